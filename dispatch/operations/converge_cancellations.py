"""Carry out what was asked for by ``request_cancel``: one run a transaction, however large the run."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import DatabaseError, transaction

from dispatch.leadership import Fence
from dispatch.operations.batches import Look, past_the_busy
from dispatch.operations.locking import of_a_lock, set_lock_timeout
from dispatch.operations.settling import stop_if_drained
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from workflows.ledger import RunLedger

DUTY = "converge_cancellations"
LOCK_TIMEOUT_MS = 500
BUSY_WAIT_MS = 50
"""How long a duty waits for a run while there are others; one busy in two passes running gets the longer time."""
BUSY_RUNS = 2
"""Runs of one batch that may be found busy."""
LOOKED_AT = 100


def converge_cancellations(*, fence: Fence, skips: Skips | None = None) -> int:
    """Cancel one run whose cancel was asked for, the oldest request first; how many were canceled.

    One run is one batch, however large, so that the leader is heard of between two. A run that somebody holds is
    passed over for the rest of the pass, and those that nobody was seen holding come first in the next one.
    """
    skips = skips or Skips()

    def batch(look: Look) -> int:
        candidates = _candidates(skips) if look.among is None else look.among
        return _converge_first(look, candidates, fence=fence, skips=skips)

    return past_the_busy(DUTY, batch, fence=fence, skips=skips)


def _candidates(skips: Skips) -> list[UUID]:
    left_out, was_busy = set(skips.left_out(DUTY)), skips.was_busy(DUTY)
    oldest = [run_id for (run_id,) in sql.rows("cancel_candidates", limit=LOOKED_AT + len(left_out))]
    return sorted((one for one in oldest if one not in left_out), key=lambda run_id: run_id in was_busy)


def _converge_first(look: Look, candidates: Sequence[UUID], *, fence: Fence, skips: Skips) -> int:
    wait_ms = LOCK_TIMEOUT_MS if look.plainly else BUSY_WAIT_MS
    busy = 0
    for run_id in candidates:
        look.runs = [run_id]
        try:
            if converge_cancellation(run_id, fence=fence, wait_ms=wait_ms):
                return 1
        except DatabaseError as error:
            if not of_a_lock(error):
                raise
            skips.add(DUTY, look.runs)
            busy += 1
            if busy == BUSY_RUNS:
                break
    return 0


def converge_cancellation(
    run_id: UUID, *, fence: Fence | None = None, actor: str = "coordinator", wait_ms: int | None = None
) -> bool:
    """Cancel one run if its cancel was asked for and it is still open.

    Without a fence any process may converge, for instance a request its own cancel. Raises OperationalError (lock
    not available) if the run is held for longer than ``wait_ms``, by default LOCK_TIMEOUT_MS.

    Locks the run plainly, its open dispatches by ascending id, then draining workers that lose a lease.
    """
    with transaction.atomic(durable=True):
        if fence is not None:
            fence.check()
        set_lock_timeout(LOCK_TIMEOUT_MS if wait_ms is None else wait_ms)
        with RunLedger.open([run_id], actor=actor) as ledger:
            run = ledger.runs.get(run_id)
            if run is None or run.state.terminal or run.cancel_requested_at is None:
                return False
            held = sql.records("lock_open_dispatches_of_run", run_id=run_id)
            ledger.cancel_runs([run_id])
            ledger.batch.add(sql, "cancel_dispatches_of_runs", len(held), run_ids=[run_id], now=ledger.now)
        stop_if_drained(held, now=ledger.now)
    return True
