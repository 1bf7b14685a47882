"""Keep what a running attempt says of itself: its latest progress, and its log lines.

Neither is state: no revision, no event. The caller has checked the lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from platform_site.database import require_transaction
from platform_site.statements import Statements

MAX_LOG_BYTES = 1024 * 1024
MAX_LINE_BYTES = 8 * 1024

_sql = Statements("workflows.operations.sql")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, already clean enough to store; ``cleaned`` says that something was replaced."""

    level: str
    text: str
    cleaned: bool = False


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """How many lines were kept, and whether the attempt's log is full."""

    accepted: int
    truncated: bool


def record_progress(*, run_id: UUID, task_id: int, percent: int | None, text: str) -> None:
    """Replace the task's progress. Runs inside the caller's transaction."""
    require_transaction()
    _sql.run("record_progress", run_id=run_id, task_id=task_id, percent=percent, text=text)


def append_logs(*, run_id: UUID, task_id: int, number: int, lines: Sequence[LogLine]) -> LogAnswer:
    """Append lines to the attempt's log until it holds MAX_LOG_BYTES; then mark it truncated.

    Locks the attempt row, so that two batches of one attempt cannot both take the last room.
    """
    require_transaction()
    [(attempt_id, used, truncated)] = _sql.rows(
        "lock_attempt_log", run_id=run_id, task_id=task_id, number=number
    )
    kept: list[LogLine] = []
    for line in lines:
        size = len(line.text.encode())
        if truncated or used + size > MAX_LOG_BYTES:
            truncated = True
            break
        used += size
        kept.append(line)
    _sql.run(
        "append_logs",
        run_id=run_id,
        attempt_id=attempt_id,
        levels=[line.level for line in kept],
        texts=[line.text for line in kept],
        cleaned=[line.cleaned for line in kept],
        used=used,
        truncated=truncated,
    )
    return LogAnswer(accepted=len(kept), truncated=truncated)
