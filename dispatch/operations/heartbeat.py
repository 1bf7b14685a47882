"""Renew the leases a worker holds, and hear that it lives. Idle workers send it too.

No run is locked: a renewal moves no task. The worker's leases are locked by ascending id, then its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import transaction

from dispatch.errors import WorkerSessionInvalid
from dispatch.lease import HeldLease, owns, valid
from dispatch.statements import sql
from dispatch.states import DispatchState, WorkerState
from platform_site.database import database_now


class LeaseStatus(StrEnum):
    """How a lease stands after a heartbeat."""

    RENEWED = "renewed"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NamedLease:
    """A lease as the worker names it."""

    dispatch_id: UUID
    lease_token: str


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """One lease of the heartbeat; ``remaining`` only if it was renewed."""

    dispatch_id: UUID
    status: LeaseStatus
    remaining: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat."""

    worker_state: WorkerState
    leases: list[LeaseAnswer]


def heartbeat(
    *, worker_id: UUID, leases: Sequence[NamedLease], answered_through: int, lease_duration: timedelta
) -> Beat:
    """Renew what is still valid and mark as lost what an unanswered claim leased.

    ``answered_through`` is the highest n such that every call up to n was answered or given up. A lease of such
    a call that is not listed never reached the worker. Raises WorkerSessionInvalid, and renews nothing then.
    """
    with transaction.atomic(durable=True):
        held = {row["id"]: row for row in sql.records("lock_leases_of_worker", worker_id=worker_id)}
        now = database_now()
        known = {named for named in leases if _is_valid(held.get(named.dispatch_id), named, worker_id, now)}
        if known:
            sql.run("renew_leases", ids=[named.dispatch_id for named in known], now=now, lease=lease_duration)
        _mark_lost(held, leases, answered_through, now)
        beaten = sql.rows("beat_worker", worker_id=worker_id, now=now)
        if not beaten:
            raise WorkerSessionInvalid
        gone = [named for named in leases if named not in known]
        owners = _owners(gone)
    answers = [
        LeaseAnswer(
            named.dispatch_id, LeaseStatus.RENEWED, _remaining(held[named.dispatch_id], now, lease_duration)
        )
        if named in known
        else LeaseAnswer(named.dispatch_id, _gone(owners.get(named.dispatch_id), named, worker_id))
        for named in leases
    ]
    return Beat(worker_state=WorkerState(beaten[0][0]), leases=answers)


def _is_valid(row: Mapping[str, Any] | None, named: NamedLease, worker_id: UUID, now: datetime) -> bool:
    if row is None:
        return False
    lease = HeldLease(
        state=DispatchState(row["state"]),
        worker_id=row["worker_id"],
        worker_state=WorkerState.ACTIVE,  # the worker's own row decides below, and rolls everything back
        lease_digest=row["lease_digest"],
        lease_expires_at=row["lease_expires_at"],
        attempt_deadline=row["attempt_deadline"],
    )
    return owns(lease, worker_id=worker_id, token=named.lease_token) and valid(lease, now=now)


def _mark_lost(
    held: Mapping[UUID, Mapping[str, Any]], leases: Sequence[NamedLease], answered_through: int, now: datetime
) -> None:
    listed = {named.dispatch_id for named in leases}
    lost = [
        dispatch_id
        for dispatch_id, row in held.items()
        if dispatch_id not in listed and row["claim_no"] is not None and row["claim_no"] <= answered_through
    ]
    if lost:
        sql.run("mark_lost", ids=lost, now=now)


def _owners(gone: Sequence[NamedLease]) -> dict[UUID, tuple[UUID | None, bytes | None]]:
    if not gone:
        return {}
    rows = sql.rows("read_dispatch_owners", ids=[named.dispatch_id for named in gone])
    return {dispatch_id: (worker_id, digest) for dispatch_id, worker_id, digest in rows}


def _gone(owner: tuple[UUID | None, bytes | None] | None, named: NamedLease, worker_id: UUID) -> LeaseStatus:
    """Revoked if it once was this worker's; unknown if it never was, so that a guess learns nothing."""
    if owner is None:
        return LeaseStatus.UNKNOWN
    lease = HeldLease(DispatchState.EXPIRED, owner[0], None, owner[1], None, None)
    mine = owns(lease, worker_id=worker_id, token=named.lease_token)
    return LeaseStatus.REVOKED if mine else LeaseStatus.UNKNOWN


def _remaining(row: Mapping[str, Any], now: datetime, lease_duration: timedelta) -> timedelta:
    deadline: datetime = row["attempt_deadline"]
    return min(lease_duration, deadline - now)
