"""What the ledger is handed and what it hands back: frozen facts, no models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from workflows.kernel.states import RunState, TaskState


@dataclass(frozen=True, slots=True)
class TaskRef:
    """A task, with what its moves need to know without reading it."""

    run_id: UUID
    task_id: int
    key: str
    class_id: int
    position: int


@dataclass(frozen=True, slots=True)
class Birth:
    """An attempt that begins: who holds it, under which lease, until when."""

    task: TaskRef
    number: int
    deadline: datetime
    dispatch_id: UUID
    worker_id: UUID | None = None
    worker_name: str = ""
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class LockedRun:
    """A run as it was when its lock was taken."""

    id: UUID
    tenant_id: int
    version_id: int
    state: RunState
    revision: int
    event_seq: int
    concurrency: int
    priority: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    last_dispatched_at: datetime | None
    turn_at: datetime
    traceparent: str
    counts: Mapping[TaskState, int]

    @property
    def active(self) -> int:
        """Tasks that hold a place in the workflow's concurrency."""
        return self.counts[TaskState.QUEUED] + self.counts[TaskState.RUNNING]

    @property
    def dispatchable(self) -> bool:
        return not self.state.terminal and self.cancel_requested_at is None


@dataclass(slots=True)
class Became:
    """What became possible by a flush, so that the caller can wake others after the commit."""

    ready: int = 0
    freed: bool = False
    settled: dict[UUID, RunState] = field(default_factory=dict)

    @property
    def worth_a_pass(self) -> bool:
        """Whether the coordinator may find something to queue that it could not before."""
        return self.ready > 0 or self.freed
