"""Take back leases that ended without a result.

Candidates are read without locks; run and dispatch are then locked in one skip-locked statement, and all
is read again under the lock: a heartbeat may just have renewed what looked expired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from random import random
from typing import Any
from uuid import UUID

from django.db import transaction

from dispatch.leadership import Fence
from dispatch.lease import LIVE_WORKER_STATES
from dispatch.liveness import liveness_gap
from dispatch.operations.batches import Look, past_the_failing
from dispatch.operations.settling import LeaseLocks, stop_if_drained, task_of
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from dispatch.states import DispatchState
from workflows.ledger import RunLedger
from workflows.ledger.settle import Ended, Ending, settle_attempts

DUTY = "reap"
LOOK_AHEAD = 20
"""Candidates looked at for each lease that may be ended: those of busy runs are passed over."""


def reap(*, fence: Fence, skips: Skips | None = None, limit: int = 500) -> int:
    """End up to ``limit`` leases that ran out, were lost on their way, or whose worker is gone; how many.

    Locks runs and dispatches skip-locked, then (if draining) workers.
    """
    skips = skips or Skips()
    # Before the transaction: even the fence alone costs a durable commit, and mostly no lease has ended.
    found = sql.rows("reap_candidates", skipped=skips.left_out(DUTY), limit=limit * LOOK_AHEAD)
    if not found:
        return 0

    def batch(look: Look) -> int:
        among = None if look.among is None else set(look.among)
        ids = [dispatch_id for dispatch_id, run_id in found if among is None or run_id in among]
        return _reap(look, ids, fence=fence, limit=limit)

    return past_the_failing(DUTY, batch, Look(), fence=fence, skips=skips)


def _reap(look: Look, candidates: list[UUID], *, fence: Fence, limit: int) -> int:
    with transaction.atomic(durable=True):
        fence.check()
        locked = sql.rows("reap_lock", ids=candidates, limit=limit)
        if not locked:
            return 0
        locks = LeaseLocks(dispatch_id for dispatch_id, _ in locked)
        look.runs = sorted({run_id for _, run_id in locked})
        with RunLedger.over(look.runs, actor="coordinator", then=locks.batch) as ledger:
            rows = locks.rows()
            [(since,)] = sql.rows("read_liveness", gap=liveness_gap()) or [(ledger.now,)]
            endings = {row["id"]: _ending(row, ledger.now, since) for row in rows.values()}
            ended = [row for row in rows.values() if endings[row["id"]] is not None]
            settle_attempts(ledger, (_ended(row, endings[row["id"]]) for row in ended), random=random)
            _close(ledger, ended, endings)
        stop_if_drained(ended, now=ledger.now)
    return len(ended)


def _ending(row: Mapping[str, Any], now: datetime, since: datetime) -> Ending | None:
    """How the lease ended, or None if it is in order after all.

    What never arrived never ran, so it cannot have timed out. A lease that was renewed did arrive: if its worker
    no longer lists it, the attempt was dropped, and counts. A worker that could not renew could not have sent its
    result in time either: an outage comes before the deadline.
    """
    if row["state"] != DispatchState.LEASED:
        return None
    lost = row["lost_at"] is not None
    if lost and row["renewed_at"] <= row["leased_at"]:
        return Ending.RELEASED
    if not lost and row["lease_expires_at"] > now and row["worker_state"] in LIVE_WORKER_STATES:
        return None
    if row["renewed_at"] < since:
        return Ending.OUTAGE
    return Ending.TIMED_OUT if row["attempt_deadline"] <= now else Ending.INTERRUPTED


_SAID = {
    Ending.TIMED_OUT: ("timeout", "execution timed out", "attempt deadline passed"),
    Ending.INTERRUPTED: ("interrupted", "the worker was lost", "lease expired"),
    Ending.OUTAGE: ("interrupted", "the control plane could not be reached", "control_plane_outage"),
    Ending.RELEASED: ("", "", "its claim was never received"),
}


def _ended(row: Mapping[str, Any], ending: Ending | None) -> Ended:
    if ending is None:
        raise ValueError("The lease has not ended.")
    code, message, reason = _SAID[ending]
    return Ended(
        task=task_of(row),
        number=row["attempt_number"],
        attempts_used=row["attempts_used"],
        ending=ending,
        error_code=code,
        error_message=message,
        reason=reason,
    )


def _close(
    ledger: RunLedger, ended: Sequence[Mapping[str, Any]], endings: Mapping[Any, Ending | None]
) -> None:
    released = [row["id"] for row in ended if endings[row["id"]] is Ending.RELEASED]
    expired = [row["id"] for row in ended if endings[row["id"]] is not Ending.RELEASED]
    if released:
        ledger.batch.add(sql, "release_dispatches", len(released), ids=released, now=ledger.now)
    if expired:
        ledger.batch.add(sql, "expire_dispatches", len(expired), ids=expired, now=ledger.now)
