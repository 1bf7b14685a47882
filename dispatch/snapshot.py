"""One query over what is open now, for metrics and alerts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dispatch.states import DispatchState, WorkerState
from platform_site.statements import Statements

_sql = Statements("dispatch.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The queue and the fleet at one moment of database time."""

    taken_at: datetime
    leader_epoch: int
    """The coordinator's term; 0 before the first."""
    queue_depth: Mapping[str, int]
    """Open dispatches by state: pending, leased."""
    tasks: Mapping[str, int]
    """Tasks by state, in runs that have not ended."""
    workers: Mapping[str, int]
    """Live workers by state: active, draining. Those that ended are history and not counted."""
    free_slots: int
    """What the active workers could still take; draining ones offer none."""
    oldest_pending_seconds: float
    """How long the oldest pending dispatch has waited; 0 while none waits."""

    @property
    def active_leases(self) -> int:
        """Dispatches that a worker holds."""
        return self.queue_depth[DispatchState.LEASED]


def take_snapshot() -> Snapshot:
    """Measure. One statement; its cost follows what is open. Raises database errors."""
    (found,) = _sql.records("snapshot")
    return Snapshot(
        taken_at=found["taken_at"],
        leader_epoch=found["leader_epoch"],
        queue_depth={
            DispatchState.PENDING.value: found["pending"],
            DispatchState.LEASED.value: found["leased"],
        },
        tasks=json.loads(found["tasks"]),
        workers={WorkerState.ACTIVE.value: found["active"], WorkerState.DRAINING.value: found["draining"]},
        free_slots=found["free_slots"],
        oldest_pending_seconds=found["oldest_pending_seconds"],
    )
