"""States of dispatches and workers, one transition table each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class DispatchState(StrEnum):
    """``pending`` waits for a worker, ``leased`` is held by one; the rest are final."""

    PENDING = "pending"
    LEASED = "leased"
    COMPLETED = "completed"
    EXPIRED = "expired"
    RELEASED = "released"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        return not DISPATCH_TRANSITIONS[self]


class WorkerState(StrEnum):
    """``stopped`` and ``offline`` are final: the process registers anew."""

    ACTIVE = "active"
    DRAINING = "draining"
    STOPPED = "stopped"
    OFFLINE = "offline"

    @property
    def terminal(self) -> bool:
        return not WORKER_TRANSITIONS[self]


DISPATCH_TRANSITIONS: Mapping[DispatchState, frozenset[DispatchState]] = {
    DispatchState.PENDING: frozenset({DispatchState.LEASED, DispatchState.CANCELED}),
    DispatchState.LEASED: frozenset(
        {DispatchState.COMPLETED, DispatchState.EXPIRED, DispatchState.RELEASED, DispatchState.CANCELED}
    ),
    DispatchState.COMPLETED: frozenset(),
    DispatchState.EXPIRED: frozenset(),
    DispatchState.RELEASED: frozenset(),
    DispatchState.CANCELED: frozenset(),
}

WORKER_TRANSITIONS: Mapping[WorkerState, frozenset[WorkerState]] = {
    WorkerState.ACTIVE: frozenset({WorkerState.DRAINING, WorkerState.STOPPED, WorkerState.OFFLINE}),
    WorkerState.DRAINING: frozenset({WorkerState.STOPPED, WorkerState.OFFLINE}),
    WorkerState.STOPPED: frozenset(),
    WorkerState.OFFLINE: frozenset(),
}

DISPATCH_HELP: Mapping[DispatchState, str] = {
    DispatchState.PENDING: "The coordinator queued the task; a worker that accepts its class takes it. "
    "If it stays, look at the workers: none may have a free slot of that kind.",
    DispatchState.LEASED: "A worker holds it and renews it by heartbeats; it ends with a result, or at its expiry.",
    DispatchState.COMPLETED: "A result was accepted under its lease.",
    DispatchState.EXPIRED: "The lease or the attempt's time ran out; the task was retried or failed.",
    DispatchState.RELEASED: "Given back before it started; the task is ready again.",
    DispatchState.CANCELED: "The run was canceled, or no worker was left that accepts it.",
}

WORKER_HELP: Mapping[WorkerState, str] = {
    WorkerState.ACTIVE: "Registered and heard from; takes work.",
    WorkerState.DRAINING: "Finishes what it holds and takes nothing more.",
    WorkerState.STOPPED: "Ended in order. Its process registers anew when it starts again.",
    WorkerState.OFFLINE: "Not heard from for too long; its leases were taken back. Look at its machine.",
}
