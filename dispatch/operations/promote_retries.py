"""Make every retry that is due ready again."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from dispatch.leadership import Fence
from dispatch.operations.batches import Look, past_the_busy
from dispatch.operations.settling import task_of
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from workflows.ledger import RunLedger

DUTY = "promote_retries"
BATCH_RUNS = 100
BATCH_TASKS = 1_000


def promote_retries(*, fence: Fence, skips: Skips) -> int:
    """Promote one batch of due retries; how many. Locks runs by ascending id, skipping those held.

    A run that was skipped in two passes running is waited for, alone, up to a second.
    """

    def batch(look: Look) -> int:
        return _promote(look, fence=fence, skips=skips)

    return past_the_busy(DUTY, batch, fence=fence, skips=skips)


def _promote(look: Look, *, fence: Fence, skips: Skips) -> int:
    # Before the transaction: even the fence alone costs a durable commit, and mostly nothing is due.
    candidates = _due(skips) if look.among is None else look.among
    if not candidates:
        return 0
    with transaction.atomic(durable=True):
        fence.check()
        locked = look.lock(DUTY, candidates, skips)
        if not locked:
            return 0
        rows = sql.records("pick_due", run_ids=list(locked), tasks=BATCH_TASKS)
        with RunLedger.over({row["run_id"] for row in rows}, actor="coordinator") as ledger:
            ledger.promote_tasks(task_of(row) for row in rows)
        return len(rows)


def _due(skips: Skips) -> list[UUID]:
    rows = sql.rows("due_retries", tasks=BATCH_TASKS, batch=BATCH_RUNS, skipped=skips.left_out(DUTY))
    return [run_id for (run_id,) in rows]
