"""Compare every counter and invariant with the rows, on a live system. Exit code 1 if anything is wrong."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from platform_site.consistency.examination import MOST_FINDINGS, Report, examine


class Command(BaseCommand):
    """Recompute counters and invariants from the rows and report what differs."""

    help = "Recompute every counter and invariant from the rows and report what differs (exit code 1)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="report as one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        report = examine(dispatch_limit=settings.WORKLOAD.dispatch_limit)
        self._print_json(report) if options["json"] else self._print_text(report)
        if not report.clean:
            sys.exit(1)

    def _print_json(self, report: Report) -> None:
        found = [{**asdict(finding), "run_id": _text(finding.run_id)} for finding in report.findings]
        self.stdout.write(
            json.dumps(
                {
                    "clean": report.clean,
                    "runs": report.runs,
                    "checks": report.checks,
                    "truncated": report.truncated,
                    "findings": found,
                }
            )
        )

    def _print_text(self, report: Report) -> None:
        for finding in report.findings:
            where = f"run {finding.run_id} {finding.subject}" if finding.run_id else finding.subject
            self.stdout.write(f"{finding.check}: {where}: {finding.message}")
        if report.truncated:
            self.stdout.write(f"Stopped at {MOST_FINDINGS} findings; there may be more.")
        verdict = "clean" if report.clean else f"{len(report.findings)} findings"
        self.stdout.write(f"{len(report.checks)} checks over {report.runs} runs: {verdict}.")


def _text(value: object) -> str | None:
    return None if value is None else str(value)
