"""Facts of this app as plain values of an answer. The claim and completion answers are the hot path."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from dispatch.operations.claim import Lease
from dispatch.operations.heartbeat import Beat
from dispatch.queries import WorkerRow

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(remaining: timedelta) -> int:
    """Whole milliseconds that remain, rounded down: never promise more than there is."""
    return max(remaining // _MILLISECOND, 0)


def present_leases(leases: Sequence[Lease]) -> list[dict[str, Any]]:
    """Leases as their worker gets them."""
    return [_lease(lease) for lease in leases]


def _lease(lease: Lease) -> dict[str, Any]:
    body = {
        "dispatch_id": str(lease.dispatch_id),
        "lease_token": lease.token,
        "generation": lease.generation,
        "idempotency_key": lease.idempotency_key,
        "run_id": str(lease.run_id),
        "workflow_id": lease.workflow,
        "workflow_version": lease.version,
        "task_key": lease.task_key,
        "executor_kind": lease.executor_kind,
        "action": lease.action,
        "input": lease.input,
        "attempt": lease.attempt,
        "lease_remaining_ms": milliseconds(lease.expires_in),
        "attempt_remaining_ms": milliseconds(lease.deadline_in),
    }
    if lease.traceparent:
        body["traceparent"] = lease.traceparent
    return body


def present_beat(beat: Beat) -> dict[str, Any]:
    """The answer to a heartbeat."""
    leases: list[dict[str, Any]] = []
    for answer in beat.leases:
        entry: dict[str, Any] = {"dispatch_id": str(answer.dispatch_id), "status": answer.status.value}
        if answer.remaining is not None:
            entry["lease_remaining_ms"] = milliseconds(answer.remaining)
        leases.append(entry)
    return {"worker_state": beat.worker_state.value, "leases": leases}


def present_worker(worker: WorkerRow) -> dict[str, Any]:
    """One worker for people and tools: no token, no digest."""
    return {
        "worker_id": worker.id,
        "display_name": worker.display_name,
        "state": worker.state.value,
        "executor_kinds": list(worker.executor_kinds),
        "labels": dict(worker.labels),
        "max_concurrency": worker.max_concurrency,
        "active_leases": worker.active_leases,
        "protocol_version": worker.protocol_version,
        "drills": worker.drills,
        "registered_at": worker.registered_at,
        "last_heartbeat_at": worker.last_heartbeat_at,
        "stopped_at": worker.stopped_at,
    }
