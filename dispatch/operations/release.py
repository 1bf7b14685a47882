"""Give a lease back unstarted: the task is ready again and nothing of its retry budget is used."""

from __future__ import annotations

from random import random
from uuid import UUID

from django.db import transaction

from dispatch.errors import LeaseLost
from dispatch.lease import owns, valid
from dispatch.operations.complete import Outcome
from dispatch.operations.settling import LeaseLocks, held_lease, stop_if_drained, task_of
from dispatch.statements import sql
from dispatch.states import DispatchState
from platform_site import wake
from workflows.ledger import RunLedger
from workflows.ledger.settle import Ended, Ending, settle_attempts


def release(*, worker_id: UUID, dispatch_id: UUID, lease_token: str) -> Outcome:
    """Release the lease; a repeat is answered like the first. Raises LeaseLost.

    Locks the run, then the dispatch, then (if it is draining) the worker.
    """
    found = sql.rows("runs_of_dispatches", ids=[dispatch_id])
    if not found:
        raise LeaseLost
    with transaction.atomic(durable=True):
        locks = LeaseLocks([dispatch_id])
        with RunLedger.open([found[0][1]], actor="worker", then=locks.batch) as ledger:
            rows = locks.rows()
            row = rows.get(dispatch_id)
            if row is None or not owns(held_lease(row), worker_id=worker_id, token=lease_token):
                raise LeaseLost
            if row["state"] == DispatchState.RELEASED:
                return Outcome.REPLAYED
            if not valid(held_lease(row), now=ledger.now):
                raise LeaseLost
            end = Ended(
                task=task_of(row),
                number=row["attempt_number"],
                attempts_used=row["attempts_used"],
                ending=Ending.RELEASED,
                reason="released unstarted",
            )
            settle_attempts(ledger, [end], random=random)
            ledger.batch.add(sql, "release_dispatches", 1, ids=[dispatch_id], now=ledger.now)
        stop_if_drained(rows.values(), now=ledger.now)
    wake.coordinator()
    return Outcome.APPLIED
