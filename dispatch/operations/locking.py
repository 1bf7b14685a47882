"""How coordinator duties lock runs: skip-locked in batches, or one stubborn run plainly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection

from dispatch.operations.skips import Skips
from dispatch.statements import sql
from platform_site.database import require_transaction

LOCK_NOT_AVAILABLE = "55P03"
DEADLOCK_DETECTED = "40P01"
STUBBORN_WAIT_MS = 1000
MOST_BATCHES = 10
"""Batches of one call that may find every run of theirs busy."""


class Fence(Protocol):
    """The leader's right to write. ``check`` raises LeadershipLost; it is a transaction's first statement."""

    def check(self) -> None: ...


def sqlstate(error: DatabaseError) -> str | None:
    """PostgreSQL's code of an error that came through Django."""
    return getattr(error.__cause__, "sqlstate", None)


def set_lock_timeout(milliseconds: int) -> None:
    """Bound lock waits of the open transaction."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{milliseconds}ms"])


def past_the_busy(duty: str, skips: Skips, batch: Callable[[UUID | None], int]) -> int:
    """Run ``batch`` until it changes something; how much it changed.

    ``batch(None)`` looks past the runs it skipped before. When that leaves nothing, one run that was busy in two
    passes running is waited for: ``batch(run_id)``. A batch that only skipped is not the end of the work.
    """
    for _ in range(MOST_BATCHES):
        skipped = len(skips.left_out(duty))
        changed = batch(None)
        if changed:
            return changed
        if len(skips.left_out(duty)) == skipped:
            break
    stubborn = skips.take_stubborn(duty)
    if stubborn is None:
        return 0
    try:
        return batch(stubborn)
    except OperationalError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        return 0


def lock_free_runs(duty: str, run_ids: Sequence[UUID], skips: Skips) -> dict[UUID, int]:
    """Lock those of the runs that are open and that nobody holds; note the others as skipped.

    Returns how many more tasks of each may be queued within its concurrency.
    """
    require_transaction()
    locked: dict[UUID, int] = dict(sql.rows("lock_runs_skipping", run_ids=list(run_ids)))
    skips.add(duty, set(run_ids) - locked.keys())
    return locked


def lock_stubborn_run(run_id: UUID) -> dict[UUID, int]:
    """Wait up to a second for one run. Empty if it is still held after that, or no longer open."""
    set_lock_timeout(STUBBORN_WAIT_MS)
    return dict(sql.rows("lock_run_plainly", run_id=run_id))
