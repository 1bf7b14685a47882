"""``manage.py up``: the whole platform on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from platform_site.embedded.errors import EmbeddedError
from platform_site.launcher.first_start import ADMIN_FILE, ADMIN_NAME
from platform_site.launcher.platform import LauncherError, Platform, PlatformOptions
from platform_site.launcher.ports import PortTaken
from platform_site.launcher.signals import StopSignals


class Command(BaseCommand):
    """Starts database, web, coordinator and workers, and keeps them running."""

    help = "Run the whole platform on this machine: database, web, coordinator and workers. Ctrl-C stops it."
    requires_system_checks = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lines = threading.Lock()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=_port, help="default 8000, or a free one near it")
        parser.add_argument("--workers", type=_count, default=2, metavar="N", help="worker processes")
        parser.add_argument(
            "--kind", action="append", metavar="KIND", help="an executor kind of the workers, may be repeated"
        )
        parser.add_argument(
            "--concurrency", type=_count, default=16, metavar="N", help="tasks at a time per worker"
        )

    def handle(self, *_args: Any, **given: Any) -> None:
        options = PlatformOptions(
            host=given["host"],
            port=given["port"],
            workers=given["workers"],
            worker_kinds=given["kind"] or ("python", "mock"),
            worker_concurrency=given["concurrency"],
        )
        platform = Platform(
            options, output=lambda name, line: self._say(f"{name:<11} | {line}"), announce=self._say
        )
        signals = StopSignals(platform)
        try:
            platform.start()
            self._say(self._welcome(platform))
            signals.wait()
        except (EmbeddedError, LauncherError, PortTaken) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("Interrupted while starting.")
        finally:
            signals.stopping()
            self._say("Stopping; again Ctrl-C, or SIGTERM, waits for nothing.")
            platform.stop()
            self._say("Stopped.")

    def _say(self, line: str) -> None:
        """From several threads; a reader that went away must not stop the platform."""
        with self._lines, contextlib.suppress(BrokenPipeError):
            self.stdout.write(line)
            self.stdout.flush()

    def _welcome(self, platform: Platform) -> str:
        credentials = platform.credentials
        kept = settings.WORKLOAD.data_dir / ADMIN_FILE
        if credentials.admin_is_new:
            who = f"{ADMIN_NAME}, password {credentials.admin_password} (shown once; kept in {kept})"
        elif credentials.admin_password:
            who = f"{ADMIN_NAME}, password in {kept}"
        else:
            who = "as you set it up"
        return (
            f"\n  The platform is ready at {platform.address}\n"
            f"  Sign in:  {who}\n"
            f"  API:      {platform.address}/api/docs\n"
            "  Ctrl-C stops everything.\n"
        )


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port; 0 takes any free one")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 <= int(text) <= 1024:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1024")
