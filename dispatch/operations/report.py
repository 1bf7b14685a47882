"""What a running attempt says of itself: progress and log lines, under its lease.

Neither changes state. The dispatch alone is locked, so that nobody ends the lease between the look at it and
the write; whoever moves the task locks that dispatch first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from dispatch.errors import LeaseLost
from dispatch.lease import owns, valid
from dispatch.operations.results import clean
from dispatch.operations.settling import held_lease
from dispatch.statements import sql
from platform_site.database import database_now
from workflows.operations.record_progress import (
    MAX_LINE_BYTES,
    LogAnswer,
    LogLine,
    append_logs,
    record_progress,
)

MAX_PROGRESS_BYTES = 256


def report_progress(
    *, worker_id: UUID, dispatch_id: UUID, lease_token: str, percent: int | None, text: str
) -> None:
    """Keep the latest progress of the attempt; ``percent`` is 0..100, of ``text`` 256 bytes are kept.

    Raises LeaseLost. Locks the dispatch, then the task.
    """
    with transaction.atomic(durable=True):
        row = _held(worker_id, dispatch_id, lease_token)
        record_progress(
            run_id=row["run_id"],
            task_id=row["task_id"],
            percent=percent,
            text=clean(text, MAX_PROGRESS_BYTES),
        )


def report_logs(
    *, worker_id: UUID, dispatch_id: UUID, lease_token: str, lines: Sequence[tuple[str, str]]
) -> LogAnswer:
    """Append lines (level, text) to the attempt's log, as many as there is room for.

    Raises LeaseLost. Locks the dispatch, then the attempt.
    """
    with transaction.atomic(durable=True):
        row = _held(worker_id, dispatch_id, lease_token)
        return append_logs(
            run_id=row["run_id"],
            task_id=row["task_id"],
            number=row["attempt_number"],
            lines=[_line(level, text) for level, text in lines],
        )


def _held(worker_id: UUID, dispatch_id: UUID, lease_token: str) -> Mapping[str, Any]:
    rows = sql.records("lock_leases", ids=[dispatch_id])
    if not rows:
        raise LeaseLost
    row = rows[0]
    lease = held_lease(row)
    if not owns(lease, worker_id=worker_id, token=lease_token) or not valid(lease, now=database_now()):
        raise LeaseLost
    return row


def _line(level: str, text: str) -> LogLine:
    kept = clean(text, MAX_LINE_BYTES)
    return LogLine(level, kept, cleaned=kept != text)
