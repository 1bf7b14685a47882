"""What worker and control plane tell each other, as plain values; durations are remaining milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.executors.base import ExecutionRequest


@dataclass(frozen=True, slots=True)
class Registration:
    """What a worker says about itself."""

    display_name: str
    executor_kinds: tuple[str, ...]
    max_concurrency: int
    labels: Mapping[str, str]
    drills: bool


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """What the control plane answers to a registration; durations in milliseconds."""

    worker_id: str
    session_token: str
    heartbeat_interval_ms: int
    lease_duration_ms: int

    def __repr__(self) -> str:
        return f"WorkerSession({self.worker_id})"


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease as granted; the remaining times count from the moment the answer was made."""

    dispatch_id: str
    lease_token: str
    executor_kind: str
    request: ExecutionRequest
    lease_remaining_ms: int
    attempt_remaining_ms: int

    def __repr__(self) -> str:
        return f"Lease({self.dispatch_id})"


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Leases, and how long the server held the call before it made them (0: not told)."""

    leases: tuple[Lease, ...]
    retry_after_ms: int = 0
    waited_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Refill:
    """The slots that a completion asks for."""

    slots: int
    claim_no: int


@dataclass(frozen=True, slots=True)
class CompletionAnswer:
    """The outcome per dispatch, and the leases of the refill. `refill_code` is why there was no refill."""

    outcomes: Mapping[str, str]
    leases: tuple[Lease, ...] = ()
    refill_code: str = ""
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """renewed | revoked | unknown, with the new remaining time of a renewed lease."""

    dispatch_id: str
    status: str
    lease_remaining_ms: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The state of the worker as the control plane sees it, and of each lease named."""

    worker_state: str
    leases: tuple[LeaseStatus, ...]
