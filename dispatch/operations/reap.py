"""Take back leases that ended without a result.

Candidates are read without locks; run and dispatch are then locked in one skip-locked statement, and all
is read again under the lock: a heartbeat may just have renewed what looked expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from random import random
from typing import Any

from django.db import transaction

from dispatch.lease import LIVE_WORKER_STATES
from dispatch.liveness import liveness_gap
from dispatch.operations.locking import Fence
from dispatch.operations.settling import LeaseLocks, stop_if_drained, task_of
from dispatch.statements import sql
from dispatch.states import DispatchState
from workflows.ledger import RunLedger
from workflows.ledger.settle import Ended, Ending, settle_attempts

LOOK_AHEAD = 20
"""Candidates looked at for each lease that may be ended: those of busy runs are passed over."""


def reap(*, fence: Fence, limit: int = 500) -> int:
    """End up to ``limit`` leases that ran out, were lost on their way, or whose worker is gone; how many.

    Locks runs and dispatches skip-locked, then (if draining) workers.
    """
    # Before the transaction: even the fence alone costs a durable commit, and mostly no lease has ended.
    found = sql.rows("reap_candidates", limit=limit * LOOK_AHEAD)
    candidates = [dispatch_id for (dispatch_id,) in found]
    if not candidates:
        return 0
    with transaction.atomic(durable=True):
        fence.check()
        locked = sql.rows("reap_lock", ids=candidates, limit=limit)
        if not locked:
            return 0
        locks = LeaseLocks(dispatch_id for dispatch_id, _ in locked)
        with RunLedger.over(
            {run_id for _, run_id in locked}, actor="coordinator", then=locks.batch
        ) as ledger:
            rows = locks.rows()
            [(since,)] = sql.rows("read_liveness", gap=liveness_gap()) or [(ledger.now,)]
            endings = {row["id"]: _ending(row, ledger.now, since) for row in rows.values()}
            ended = [row for row in rows.values() if endings[row["id"]] is not None]
            settle_attempts(ledger, (_ended(row, endings[row["id"]]) for row in ended), random=random)
            _close(ended, endings, ledger.now)
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


def _close(ended: list[dict[str, Any]], endings: Mapping[Any, Ending | None], now: datetime) -> None:
    released = [row["id"] for row in ended if endings[row["id"]] is Ending.RELEASED]
    expired = [row["id"] for row in ended if endings[row["id"]] is not Ending.RELEASED]
    if released:
        sql.run("release_dispatches", ids=released, now=now)
    if expired:
        sql.run("expire_dispatches", ids=expired, now=now)
