"""How operations lock runs: skip-locked in batches, or one stubborn run plainly."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import DatabaseError, connection

from dispatch.operations.skips import Skips
from dispatch.statements import sql
from platform_site.database import require_transaction

LOCK_NOT_AVAILABLE = "55P03"
DEADLOCK_DETECTED = "40P01"
QUERY_CANCELED = "57014"
STUBBORN_WAIT_MS = 1000


def sqlstate(error: DatabaseError) -> str | None:
    """PostgreSQL's code of an error that came through Django."""
    return getattr(error.__cause__, "sqlstate", None)


def of_a_lock(error: DatabaseError) -> bool:
    """Whether a lock could not be had: nothing is wrong, and a later try may succeed."""
    return sqlstate(error) in (LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED)


def of_the_server(error: DatabaseError) -> bool:
    """Whether the database or the way to it is in trouble: no statement is to blame."""
    code = sqlstate(error)
    return code is None or (code != QUERY_CANCELED and code[:2] in ("08", "25", "53", "57", "58"))


def set_lock_timeout(milliseconds: int) -> None:
    """Bound lock waits of the open transaction."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{milliseconds}ms"])


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
