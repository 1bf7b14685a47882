"""Carry out what was asked for by ``request_cancel``: one run a transaction, however large the run."""

from __future__ import annotations

import time
from uuid import UUID

from django.db import OperationalError, transaction

from dispatch.operations.locking import LOCK_NOT_AVAILABLE, Fence, set_lock_timeout, sqlstate
from dispatch.operations.settling import stop_if_drained
from dispatch.statements import sql
from workflows.ledger import RunLedger

LOCK_TIMEOUT_MS = 500
BUDGET_SECONDS = 0.5


def converge_cancellations(*, fence: Fence | None = None, limit: int = 100) -> int:
    """Cancel the oldest ``limit`` runs whose cancel was asked for; how many were canceled.

    A run that somebody holds for longer than a moment is left to the next pass, and no more are begun once the
    time of a duty is over. Without a fence any process may converge, for instance a request its own cancel.
    """
    canceled = 0
    until = time.monotonic() + BUDGET_SECONDS
    for (run_id,) in sql.rows("cancel_candidates", limit=limit):
        try:
            canceled += converge_cancellation(run_id, fence=fence)
        except OperationalError as error:
            if sqlstate(error) != LOCK_NOT_AVAILABLE:
                raise
        if time.monotonic() >= until:
            break
    return canceled


def converge_cancellation(run_id: UUID, *, fence: Fence | None = None) -> bool:
    """Cancel one run if its cancel was asked for and it is still open.

    Raises OperationalError (lock not available) if the run is held for longer than LOCK_TIMEOUT_MS.

    Locks the run plainly, its open dispatches by ascending id, then draining workers that lose a lease.
    """
    with transaction.atomic(durable=True):
        if fence is not None:
            fence.check()
        set_lock_timeout(LOCK_TIMEOUT_MS)
        with RunLedger.open([run_id], actor="coordinator" if fence else "") as ledger:
            run = ledger.runs.get(run_id)
            if run is None or run.state.terminal or run.cancel_requested_at is None:
                return False
            held = sql.records("lock_open_dispatches_of_run", run_id=run_id)
            ledger.cancel_runs([run_id])
            sql.run("cancel_dispatches_of_runs", run_ids=[run_id], now=ledger.now)
        stop_if_drained(held, now=ledger.now)
    return True
