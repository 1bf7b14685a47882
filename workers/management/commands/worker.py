"""`manage.py worker`: takes tasks from the control plane over HTTP and executes them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workers.__main__ import end_process, run_worker
from workers.executors.python import ActionsInvalid
from workers.options import OptionsInvalid, add_arguments, from_arguments
from workers.process import ExitCode


class Command(BaseCommand):
    """Parse, build, run; the same runtime as `python -m workers`."""

    help = "Run a worker: claims tasks over HTTP, executes them, reports results. It needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The options of the worker."""
        add_arguments(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until told to stop."""
        try:
            code = run_worker(from_arguments(options))
        except (OptionsInvalid, ActionsInvalid) as error:
            raise CommandError(str(error), returncode=ExitCode.USAGE) from error
        end_process(code)
