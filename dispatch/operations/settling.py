"""What complete, release and reap share: leases read under their locks, and the last lease of a draining worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from dispatch.lease import HeldLease
from dispatch.statements import sql
from dispatch.states import DispatchState, WorkerState
from platform_site.statements import Batch
from workflows.ledger import TaskRef


class LeaseLocks:
    """The locks on some dispatches, to be taken behind their runs: ``RunLedger.open(..., then=locks.batch)``."""

    def __init__(self, dispatch_ids: Iterable[UUID]) -> None:
        self.batch = Batch()
        self._call = self.batch.add(sql, "lock_leases", ids=sorted(set(dispatch_ids)))

    def rows(self) -> dict[UUID, dict[str, Any]]:
        """The locked dispatches by id, with their tasks and workers."""
        return {row["id"]: row for row in self._call.records()}


def held_lease(row: Mapping[str, Any]) -> HeldLease:
    """A row of these as the pure predicate wants it."""
    worker_state = row["worker_state"]
    return HeldLease(
        state=DispatchState(row["state"]),
        worker_id=row["worker_id"],
        worker_state=None if worker_state is None else WorkerState(worker_state),
        lease_digest=row["lease_digest"],
        lease_expires_at=row["lease_expires_at"],
        attempt_deadline=row["attempt_deadline"],
    )


def task_of(row: Mapping[str, Any]) -> TaskRef:
    """The task of a row that names it so."""
    return TaskRef(row["run_id"], row["task_id"], row["key"], row["task_class_id"], row["position"])


def stop_if_drained(rows: Iterable[Mapping[str, Any]], *, now: datetime) -> None:
    """Stop the draining workers among these whose last lease was just settled.

    A shortcut: every coordinator pass does the same for all. Locks the workers, last in the house order.
    """
    draining = sorted({row["worker_id"] for row in rows if row["worker_state"] == WorkerState.DRAINING})
    if draining and sql.rows("lock_drained_workers", worker_ids=draining):
        sql.run("stop_drained_workers", worker_ids=draining, now=now)
