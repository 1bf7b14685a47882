"""Run every check over a live system: batch after batch, each under one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from django.db import connection, transaction

from platform_site.consistency.checks import RUN_CHECKS, Check, Finding, platform_checks, sql

BATCH_RUNS = 200
BATCH_TASKS = 20_000
"""A batch ends with the run that reaches this: one snapshot never lives for long."""
MOST_FINDINGS = 1_000
FIRST = UUID(int=0)


class Snapshot(Protocol):
    """Opens one snapshot of the database."""

    def __call__(self) -> AbstractContextManager[None]: ...


@dataclass(slots=True)
class Report:
    """What was looked at, and what is wrong."""

    runs: int = 0
    checks: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    truncated: bool = False

    @property
    def clean(self) -> bool:
        return not self.findings


@contextmanager
def repeatable_read() -> Iterator[None]:
    """One snapshot for every statement of the block; nothing can be written in it, and nobody is blocked by it."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def examine(*, dispatch_limit: int, snapshot: Snapshot = repeatable_read) -> Report:
    """Run all checks over all runs. Stops early once there are MOST_FINDINGS."""
    others = platform_checks(dispatch_limit=dispatch_limit)
    report = Report(checks=[check.name for check in (*RUN_CHECKS, *others)])
    with snapshot():
        _add(report, others, [])
    after: UUID | None = FIRST
    while after is not None and not report.truncated:
        with snapshot():
            run_ids = _next_runs(after)
            _add(report, RUN_CHECKS if run_ids else (), run_ids)
        report.runs += len(run_ids)
        after = run_ids[-1] if run_ids else None
    return report


def _next_runs(after: UUID) -> list[UUID]:
    taken: list[UUID] = []
    tasks = 0
    for run_id, total in sql.rows("_runs", after=after, batch=BATCH_RUNS):
        if taken and tasks + total > BATCH_TASKS:
            break
        taken.append(run_id)
        tasks += total
    return taken


def _add(report: Report, checks: Sequence[Check], run_ids: Sequence[UUID]) -> None:
    for check in checks:
        report.findings += check.findings(run_ids)
        if len(report.findings) >= MOST_FINDINGS:
            del report.findings[MOST_FINDINGS:]
            report.truncated = True
            return
