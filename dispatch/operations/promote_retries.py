"""Make every retry that is due ready again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import OperationalError, transaction

from dispatch.operations.locking import (
    LOCK_NOT_AVAILABLE,
    Fence,
    lock_free_runs,
    lock_stubborn_run,
    sqlstate,
)
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from workflows.ledger import RunLedger, TaskRef

DUTY = "promote_retries"
BATCH_RUNS = 100
BATCH_TASKS = 1_000


def promote_retries(*, fence: Fence, skips: Skips) -> int:
    """Promote one batch of due retries; how many. Locks runs by ascending id, skipping those held."""
    stubborn = skips.take_stubborn(DUTY)
    try:
        with transaction.atomic(durable=True):
            fence.check()
            locked = _lock(skips, stubborn)
            if not locked:
                return 0
            rows = sql.records("pick_due", run_ids=list(locked), tasks=BATCH_TASKS)
            with RunLedger.over({row["run_id"] for row in rows}, actor="coordinator") as ledger:
                ledger.promote_tasks(_task(row) for row in rows)
            return len(rows)
    except OperationalError as error:
        if stubborn is None or sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        return 0


def _lock(skips: Skips, stubborn: UUID | None) -> dict[UUID, int]:
    if stubborn is not None:
        return lock_stubborn_run(stubborn)
    rows = sql.rows("due_retries", tasks=BATCH_TASKS, batch=BATCH_RUNS, skipped=skips.left_out(DUTY))
    return lock_free_runs(DUTY, [run_id for (run_id,) in rows], skips) if rows else {}


def _task(row: Mapping[str, Any]) -> TaskRef:
    return TaskRef(row["run_id"], row["id"], row["key"], row["task_class_id"], row["position"])
