"""Queue ready tasks: give each a dispatch, in turn order, within every bound.

One call is one transaction over at most 100 runs and 1,000 tasks. Turn order has two wheels: tenants, then runs
within the tenant; every run gets its first task before any gets its second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from uuid_utils.compat import uuid7

from dispatch.leadership import Fence
from dispatch.operations.batches import Look, past_the_busy
from dispatch.operations.capacity import UNLIMITED, Capacity, measure, read_demand
from dispatch.operations.settling import task_of
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from platform_site.statements import Batch
from workflows.ledger import RunLedger

DUTY = "queue_ready"
BATCH_RUNS = 100
BATCH_TASKS = 1_000


def queue_ready(*, fence: Fence, dispatch_limit: int, skips: Skips) -> int:
    """Queue one batch; how many tasks were queued. Locks runs by ascending id, skipping those held.

    A run that was skipped in two passes running is waited for, alone, up to a second.
    """

    def batch(look: Look) -> int:
        return _queue(look, fence=fence, dispatch_limit=dispatch_limit, skips=skips)

    return past_the_busy(DUTY, batch, fence=fence, skips=skips)


def _queue(look: Look, *, fence: Fence, dispatch_limit: int, skips: Skips) -> int:
    # Before the transaction: even the fence alone costs a durable commit. The room measured here stays: nobody
    # else queues, a claim moves pending to leased, and a later leader measures after our last commit.
    capacity = measure(*read_demand(), dispatch_limit=dispatch_limit)
    if not capacity.rooms or capacity.total <= 0:
        return 0
    candidates = _candidates(look, capacity, skips)
    if not candidates:
        return 0
    with transaction.atomic(durable=True):
        fence.check()
        heads = look.lock(DUTY, [run_id for run_id, _, _ in candidates], skips)
        locked = [one for one in candidates if heads.get(one[0], 0) > 0]
        return _queue_locked(capacity, locked, heads) if locked else 0


def _candidates(look: Look, capacity: Capacity, skips: Skips) -> list[tuple[UUID, int, int]]:
    rows = sql.rows(
        "queue_candidates",
        classes=list(capacity.rooms),
        rooms=list(capacity.rooms.values()),
        full_tenants=capacity.full_tenants,
        skipped=[] if look.plainly else skips.left_out(DUTY),
        among=None if look.among is None else list(look.among),
        batch=min(BATCH_RUNS, capacity.total),
    )
    return [(run, tenant, seat) for run, tenant, seat in rows]


def _queue_locked(
    capacity: Capacity, locked: Sequence[tuple[UUID, int, int]], heads: Mapping[UUID, int]
) -> int:
    pick = Batch()
    total = min(BATCH_TASKS, capacity.total)
    found = pick.add(
        sql,
        "pick_ready",
        run_ids=[run_id for run_id, _, _ in locked],
        tenants=[tenant_id for _, tenant_id, _ in locked],
        seats=[seat for _, _, seat in locked],
        heads=[heads[run_id] for run_id, _, _ in locked],
        tenant_rooms=[capacity.tenant_rooms.get(tenant_id, UNLIMITED) for _, tenant_id, _ in locked],
        classes=list(capacity.rooms),
        rooms=list(capacity.rooms.values()),
        per_run=-(-total // len(locked)),
        total=total,
    )
    with RunLedger.over([run_id for run_id, _, _ in locked], actor="coordinator", then=pick) as ledger:
        picked = found.records()
        if picked:
            _queue_picked(ledger, picked)
    return len(picked)


def _queue_picked(ledger: RunLedger, picked: Sequence[Mapping[str, Any]]) -> None:
    ledger.queue_tasks(task_of(row) for row in picked)
    ledger.batch.add(
        sql,
        "insert_dispatches",
        len(picked),
        now=ledger.now,
        ids=[uuid7() for _ in picked],
        run_ids=[row["run_id"] for row in picked],
        task_ids=[row["task_id"] for row in picked],
        class_ids=[row["task_class_id"] for row in picked],
        traceparents=[ledger.runs[row["run_id"]].traceparent for row in picked],
        tenant_ids=sorted({row["tenant_id"] for row in picked}),
    )
