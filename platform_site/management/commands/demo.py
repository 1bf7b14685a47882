"""``manage.py demo``: the whole platform, the main job on real text, and a worker lost on the way."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone
from requests import RequestException
from rich.console import Console

from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant
from platform_site.demo.client import DemoClient
from platform_site.demo.scenario import DemoFailed, Result, Scenario
from platform_site.demo.screen import Screen, answers_table, interrupted_table
from platform_site.embedded.errors import EmbeddedError
from platform_site.launcher.first_start import ADMIN_NAME
from platform_site.launcher.platform import LauncherError, Platform, PlatformOptions
from platform_site.launcher.ports import PortTaken
from platform_site.launcher.signals import StopSignals

WORKERS = 2
CONCURRENCY = 4
SHORT_LEASES = {
    "WORKLOAD_HEARTBEAT_INTERVAL_MS": "700",
    "WORKLOAD_LEASE_DURATION_MS": "3000",
    "WORKLOAD_WORKER_MARGIN_MS": "500",
}
"""So that the viewer waits three seconds for the takeover and not fifteen."""
LOG_NAME = "demo.log"
TOKEN_LIFE = timedelta(hours=1)


class Command(BaseCommand):
    """Starts the platform, indexes documents on it, loses a worker, and shows that nothing was lost."""

    help = "Run the sample workload on real text, with a worker killed half way. Ctrl-C stops everything."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--folder", type=Path, help="folder of text; default: installed packages' descriptions"
        )
        parser.add_argument("--exit", action="store_true", help="end by itself; 0 only if the run succeeded")
        parser.add_argument("--port", type=int, help="default 8000, or a free one near it")

    def handle(self, *_args: Any, **given: Any) -> None:
        folder: Path | None = given["folder"]
        if folder is not None and not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.")
        console = Console()
        environment = dict(SHORT_LEASES)
        if folder is not None:
            environment["WORKLOAD_ACTIONS_READ_ROOT"] = str(folder.resolve())
        settings.WORKLOAD.data_dir.mkdir(parents=True, exist_ok=True)
        with (settings.WORKLOAD.data_dir / LOG_NAME).open("w", encoding="utf-8") as log:
            self._play(console, environment, log, folder=folder, given=given)

    def _play(
        self,
        console: Console,
        environment: dict[str, str],
        log: TextIO,
        *,
        folder: Path | None,
        given: dict[str, Any],
    ) -> None:
        def keep(name: str, line: str) -> None:
            with contextlib.suppress(ValueError):  # a last line after the log was closed
                log.write(f"{name:<11} | {line}\n")
                log.flush()

        platform = Platform(_options(given["port"], environment), output=keep, announce=console.print)
        signals = StopSignals(platform)
        try:
            console.print("Starting database, web, coordinator and two workers ...")
            platform.start()
            result = self._scenario(platform, console, signals, folder)
            if result is not None:
                self._show(console, platform, result)
                if not given["exit"]:
                    console.print("Everything stays up until Ctrl-C.")
                    signals.wait()
        except (EmbeddedError, LauncherError, PortTaken, DemoFailed, RequestException) as error:
            raise CommandError(f"{error}\nWhat the processes said: {log.name}") from error
        except KeyboardInterrupt:
            console.print("Interrupted.")
        finally:
            signals.stopping()
            console.print("Stopping everything ...")
            platform.stop()
            console.print("Stopped.")

    def _scenario(
        self, platform: Platform, console: Console, signals: StopSignals, folder: Path | None
    ) -> Result | None:
        until = timezone.now() + TOKEN_LIFE
        token = create_token(tenant=default_tenant(), name="demo", role=Role.OPERATOR, expires_at=until)
        connections.close_all()
        client = DemoClient(platform.address, token.plain)
        console.print(f"The console is at {platform.address}; the run shows there too.")
        with Screen(console) as screen:
            return Scenario(
                client,
                screen,
                platform.children,
                from_folder=folder is not None,
                stopping=lambda: signals.stop_requested,
            ).play()

    def _show(self, console: Console, platform: Platform, result: Result) -> None:
        console.print(answers_table(result.answers))
        console.print(interrupted_table([(one.key, one.lost, one.succeeded) for one in result.interruptions]))
        console.print(f"Run {result.run_id} succeeded although {result.killed} was killed half way.")
        console.print("Checking every stored counter and invariant against the rows:")
        call_command("check_consistency", stdout=self.stdout)
        connections.close_all()
        password = platform.credentials.admin_password
        who = f"{ADMIN_NAME}, password {password}" if password else "as you set it up"
        console.print(
            f"\n  Run:      {platform.address}/runs/{result.run_id}\n"
            f"  Admin:    {platform.address}/admin/\n"
            f"  Sign in:  {who}\n",
            highlight=False,
            soft_wrap=True,
        )


def _options(port: int | None, environment: dict[str, str]) -> PlatformOptions:
    return PlatformOptions(
        port=port,
        workers=WORKERS,
        worker_kinds=("python",),
        worker_concurrency=CONCURRENCY,
        environment=environment,
    )
