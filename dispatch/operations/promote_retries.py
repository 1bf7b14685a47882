"""Make every retry that is due ready again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from dispatch.operations.locking import Fence, lock_free_runs, lock_stubborn_run, past_the_busy
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from workflows.ledger import RunLedger, TaskRef

DUTY = "promote_retries"
BATCH_RUNS = 100
BATCH_TASKS = 1_000


def promote_retries(*, fence: Fence, skips: Skips) -> int:
    """Promote one batch of due retries; how many. Locks runs by ascending id, skipping those held.

    A run that was skipped in two passes running is waited for, alone, up to a second.
    """
    return past_the_busy(DUTY, skips, lambda only: _promote(fence=fence, skips=skips, only=only))


def _promote(*, fence: Fence, skips: Skips, only: UUID | None) -> int:
    # Before the transaction: even the fence alone costs a durable commit, and mostly nothing is due.
    candidates = [only] if only else _due(skips)
    if not candidates:
        return 0
    with transaction.atomic(durable=True):
        fence.check()
        locked = lock_stubborn_run(only) if only else lock_free_runs(DUTY, candidates, skips)
        if not locked:
            return 0
        rows = sql.records("pick_due", run_ids=list(locked), tasks=BATCH_TASKS)
        with RunLedger.over({row["run_id"] for row in rows}, actor="coordinator") as ledger:
            ledger.promote_tasks(_task(row) for row in rows)
        return len(rows)


def _due(skips: Skips) -> list[UUID]:
    rows = sql.rows("due_retries", tasks=BATCH_TASKS, batch=BATCH_RUNS, skipped=skips.left_out(DUTY))
    return [run_id for (run_id,) in rows]


def _task(row: Mapping[str, Any]) -> TaskRef:
    return TaskRef(row["run_id"], row["id"], row["key"], row["task_class_id"], row["position"])
