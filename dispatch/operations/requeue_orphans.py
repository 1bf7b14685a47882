"""Take back what is queued for workers that are no longer there. Nothing of the retry budget is used."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from dispatch.leadership import Fence
from dispatch.operations.batches import Look, past_the_busy
from dispatch.operations.capacity import orphaned, read_demand
from dispatch.operations.settling import task_of
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from workflows.ledger import RunLedger

DUTY = "requeue_orphans"
BATCH_RUNS = 100
BATCH_TASKS = 1_000


def requeue_orphans(*, fence: Fence, skips: Skips) -> int:
    """Requeue one batch of pending dispatches that no active worker accepts; how many.

    Locks runs by ascending id, skipping those held, then the dispatches. A run that was skipped in two passes
    running is waited for, alone, up to a second.
    """

    def batch(look: Look) -> int:
        return _requeue(look, fence=fence, skips=skips)

    return past_the_busy(DUTY, batch, fence=fence, skips=skips)


def _requeue(look: Look, *, fence: Fence, skips: Skips) -> int:
    # Before the transaction: even the fence alone costs a durable commit, and mostly there are no orphans.
    classes = orphaned(*read_demand())
    if not classes:
        return 0
    candidates = _orphaned_runs(classes, skips) if look.among is None else look.among
    if not candidates:
        return 0
    with transaction.atomic(durable=True):
        fence.check()
        locked = look.lock(DUTY, candidates, skips)
        if not locked:
            return 0
        rows = sql.records("pick_orphans", run_ids=list(locked), classes=classes, tasks=BATCH_TASKS)
        with RunLedger.over({row["run_id"] for row in rows}, actor="coordinator") as ledger:
            ledger.requeue_tasks((task_of(row) for row in rows), reason="no worker takes it")
            ids = [row["dispatch_id"] for row in rows]
            ledger.batch.add(sql, "cancel_dispatches", len(ids), ids=ids, now=ledger.now)
        return len(rows)


def _orphaned_runs(classes: Sequence[int], skips: Skips) -> list[UUID]:
    rows = sql.rows(
        "orphan_runs",
        classes=list(classes),
        tasks=BATCH_TASKS,
        batch=BATCH_RUNS,
        skipped=skips.left_out(DUTY),
    )
    return [run_id for (run_id,) in rows]
