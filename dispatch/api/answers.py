"""How this app's answers look, for the API description. `presenters` builds them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from dispatch.states import WorkerState
from platform_site.api.shapes import Answer
from workflows.kernel.states import RunState

Milliseconds = Annotated[int, Field(ge=0)]


class Registered(Answer):
    """A worker session. The token is shown this once."""

    worker_id: UUID
    session_token: str
    heartbeat_interval_ms: Milliseconds
    lease_duration_ms: Milliseconds
    protocol_version: int


class Lease(Answer):
    """The right and the duty to run one attempt, and everything needed for it."""

    dispatch_id: UUID
    lease_token: str
    """Proves the lease to the control plane."""
    generation: int
    """Grows from lease to lease of a task: an outside system that compares can refuse an older holder."""
    idempotency_key: str
    """Run and task: the same for every attempt."""
    run_id: UUID
    workflow_id: str
    workflow_version: int
    task_key: str
    executor_kind: str
    action: str
    input: dict[str, Any] | None
    attempt: int
    lease_remaining_ms: Milliseconds
    attempt_remaining_ms: Milliseconds
    traceparent: str = ""


class Claimed(Answer):
    """Leases; none is a normal answer."""

    leases: list[Lease]
    waited_ms: Milliseconds
    """How long the call was held before these leases were made: their remaining times count from then."""
    retry_after_ms: Milliseconds = 0
    """Ask again after this time."""


class HeartbeatLease(Answer):
    """How a lease stands."""

    dispatch_id: UUID
    status: Literal["renewed", "revoked", "unknown"]
    """revoked: it was this worker's and is over. unknown: it never was."""
    lease_remaining_ms: Milliseconds = 0
    """Of a renewed one."""


class Heartbeat(Answer):
    """The worker as the control plane sees it, and its leases in the order they were named."""

    worker_state: Literal["active", "draining"]
    leases: list[HeartbeatLease]


class Completed(Answer):
    """What became of a result, or of a release; a repeat is `replayed`."""

    outcome: Literal["applied", "replayed"]


class ItemOutcome(Answer):
    """What became of one result of many."""

    dispatch_id: UUID
    outcome: Literal["applied", "replayed", "lease_lost", "result_conflict", "retry"]
    """retry: its run was busy; send it again."""


class RefillRefused(Answer):
    """Why there was no refill, though the results are settled."""

    code: str
    retry_after_ms: Milliseconds


class Completions(Answer):
    """An outcome for every item, in order, and the leases of the refill."""

    outcomes: list[ItemOutcome]
    leases: list[Lease]
    refill: RefillRefused | None = None


class LogsKept(Answer):
    """How many lines were kept."""

    accepted: int
    truncated: bool
    """The attempt's log is full: no more will be kept."""


class Worker(Answer):
    """One start of one worker process."""

    worker_id: UUID
    display_name: str
    state: WorkerState
    executor_kinds: list[str]
    labels: dict[str, str]
    max_concurrency: int
    active_leases: int
    protocol_version: int
    drills: bool
    registered_at: datetime
    last_heartbeat_at: datetime
    stopped_at: datetime | None


class WorkerPage(Answer):
    """Workers, latest registered first."""

    items: list[Worker]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class Canceled(Answer):
    """How a cancel stands."""

    run_id: UUID
    state: RunState
    outcome: Literal["canceled", "requested", "finished"]
    """canceled: it is canceled. requested: a coordinator will carry it out. finished: the run had ended
    otherwise, and nothing was changed."""
    cancel_requested_at: datetime | None
