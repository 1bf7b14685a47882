"""Every metric of the platform, declared once, with the label values it may have.

Two sources, one page. What a process sees itself (requests, durations of operations) lives in the client
library's registry; django-prometheus adds the HTTP side. What only the database knows (queue, tasks,
workers) is measured by the leading coordinator after a pass, kept as one row, and exported from that row by
whichever web process is asked: a scrape never measures anything. See `observability.snapshot`.

A label value outside its list becomes `unknown`: ids, addresses and texts can never become labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from prometheus_client import Histogram

UNKNOWN = "unknown"

OPERATIONS = frozenset(
    {
        "publish_version",
        "start_run",
        "request_cancel",
        "register",
        "claim",
        "heartbeat",
        "complete",
        "completions",
        "release",
        "progress",
        "logs",
        "drain",
        "converge_cancellations",
        "mark_offline",
        "stop_drained",
        "reap",
        "requeue_orphans",
        "promote_retries",
        "queue_ready",
        "snapshot",
    }
)
OUTCOMES = frozenset({"success", "empty", "refused", "error"})

TASK_STATES = frozenset(
    {
        "waiting_dependencies",
        "ready",
        "queued",
        "running",
        "waiting_retry",
        "waiting_approval",
        "succeeded",
        "failed",
        "canceled",
        "skipped",
    }
)
DISPATCH_STATES = frozenset({"pending", "leased"})
POOL_STATES = frozenset({"idle", "in_use"})
WORKER_STATES = frozenset({"active", "draining", "stopped", "offline"})


@dataclass(frozen=True, slots=True)
class Declared:
    """A metric: its kind, its sentence, and for each label the values it may have."""

    kind: Literal["gauge", "counter", "summary", "histogram"]
    meaning: str
    labels: Mapping[str, frozenset[str]]


# In the order of the documentation; a test compares both.
METRICS: Mapping[str, Declared] = {
    "workload_operation_duration_seconds": Declared(
        "histogram",
        "time an operation took in the process that is asked",
        {"operation": OPERATIONS, "outcome": OUTCOMES},
    ),
    "workload_queue_depth": Declared("gauge", "dispatches that are not settled", {"state": DISPATCH_STATES}),
    "workload_tasks": Declared("gauge", "tasks of runs that have not ended", {"state": TASK_STATES}),
    "workload_workers": Declared("gauge", "worker sessions", {"state": WORKER_STATES}),
    "workload_worker_free_slots": Declared("gauge", "slots of active workers without a lease", {}),
    "workload_active_leases": Declared("gauge", "dispatches that a worker holds", {}),
    "workload_oldest_pending_seconds": Declared(
        "gauge", "age of the oldest dispatch that no worker took", {}
    ),
    "workload_leader_epoch": Declared("gauge", "term of the leading coordinator", {}),
    "workload_coordinator_up": Declared(
        "gauge", "1 if a coordinator measured within the last 15 seconds, else 0", {}
    ),
    "workload_snapshot_age_seconds": Declared("gauge", "time since the coordinator measured", {}),
    "workload_db_pool_connections": Declared(
        "gauge", "database connections of the process that is asked", {"state": POOL_STATES}
    ),
    "workload_db_pool_waiting": Declared(
        "gauge", "threads of the process that is asked that wait for a connection", {}
    ),
    "workload_lease_expirations_total": Declared(
        "counter", "leases that ended without a result, since the coordinator started", {}
    ),
    "workload_coordinator_duty_seconds": Declared(
        "summary",
        "time the coordinator spent on a duty, since it started",
        {"operation": OPERATIONS, "outcome": OUTCOMES},
    ),
}

OPERATION_SECONDS = Histogram(
    "workload_operation_duration_seconds",
    METRICS["workload_operation_duration_seconds"].meaning,
    labelnames=["operation", "outcome"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


def allowed(value: object, values: frozenset[str]) -> str:
    """The value if the list has it, else `unknown`."""
    return value if isinstance(value, str) and value in values else UNKNOWN


def observe_operation(operation: str, outcome: str, seconds: float) -> None:
    """Count one call of an operation in this process."""
    OPERATION_SECONDS.labels(allowed(operation, OPERATIONS), allowed(outcome, OUTCOMES)).observe(seconds)


@dataclass(slots=True)
class Timing:
    """Of one call in flight: set `outcome` to `empty` or `refused` where that is what happened."""

    outcome: str = "success"


@contextmanager
def timed(operation: str, observe: Callable[[str, str, float], None] = observe_operation) -> Iterator[Timing]:
    """Time the block and count it: `success` unless the block says otherwise, `error` if it raises."""
    timing = Timing()
    began = time.monotonic()
    try:
        yield timing
    except BaseException:
        timing.outcome = "error"
        raise
    finally:
        observe(operation, timing.outcome, time.monotonic() - began)
