"""Carry out what was asked for by ``request_cancel``: one run a transaction, however large the run."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from dispatch.operations.locking import Fence
from dispatch.operations.settling import stop_if_drained
from dispatch.statements import sql
from workflows.ledger import RunLedger


def converge_cancellations(*, fence: Fence | None = None, limit: int = 100) -> int:
    """Cancel the oldest ``limit`` runs whose cancel was asked for; how many were canceled.

    Without a fence for a request that wants its own cancel carried out at once: any process may converge.
    """
    return sum(
        converge_cancellation(run_id, fence=fence) for (run_id,) in sql.rows("cancel_candidates", limit=limit)
    )


def converge_cancellation(run_id: UUID, *, fence: Fence | None = None) -> bool:
    """Cancel one run if its cancel was asked for and it is still open.

    Locks the run plainly, its open dispatches by ascending id, then draining workers that lose a lease.
    """
    with transaction.atomic(durable=True):
        if fence is not None:
            fence.check()
        with RunLedger.open([run_id], actor="coordinator" if fence else "") as ledger:
            run = ledger.runs.get(run_id)
            if run is None or run.state.terminal or run.cancel_requested_at is None:
                return False
            held = sql.records("lock_open_dispatches_of_run", run_id=run_id)
            ledger.cancel_runs([run_id])
            sql.run("cancel_dispatches_of_runs", run_ids=[run_id], now=ledger.now)
        stop_if_drained(held, now=ledger.now)
    return True
