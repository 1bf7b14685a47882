"""Let time pass for stored rows: the database's clock cannot be moved, so what it is compared with is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import connection

from dispatch.operations.claim import Lease


def _run(statement: str, **params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def let_leases_expire(leases: Iterable[Lease], *, seconds: float = 60) -> None:
    """As if the leases had last been renewed so long ago that they ran out; their attempts have time left."""
    _run(
        """
        UPDATE dispatch_dispatch
        SET lease_expires_at = clock_timestamp() - interval '1 millisecond',
            renewed_at = renewed_at - make_interval(secs => %(seconds)s)
        WHERE id = ANY(%(ids)s::uuid[])
        """,
        ids=[lease.dispatch_id for lease in leases],
        seconds=seconds,
    )


def let_deadline_pass(leases: Iterable[Lease]) -> None:
    """As if the attempts had used up their time, renewed to the last."""
    _run(
        """
        UPDATE dispatch_dispatch
        SET lease_expires_at = clock_timestamp() - interval '1 millisecond',
            attempt_deadline = clock_timestamp() - interval '1 millisecond'
        WHERE id = ANY(%(ids)s::uuid[])
        """,
        ids=(ids := [lease.dispatch_id for lease in leases]),
    )
    _run(
        "UPDATE workflows_attempt SET deadline = attempt_deadline FROM dispatch_dispatch AS dispatch"
        " WHERE dispatch.id = ANY(%(ids)s::uuid[]) AND workflows_attempt.run_id = dispatch.run_id"
        " AND workflows_attempt.task_id = dispatch.task_id AND number = dispatch.attempt_number",
        ids=ids,
    )


def let_worker_be_silent(worker_id: UUID, *, seconds: float) -> None:
    """As if the worker had last been heard from so long ago."""
    _run(
        "UPDATE dispatch_worker SET last_heartbeat_at = clock_timestamp() - make_interval(secs => %(seconds)s)"
        " WHERE id = %(id)s",
        id=worker_id,
        seconds=seconds,
    )


def control_plane_there(*, since_seconds: float = 3600, seen_seconds: float = 0) -> None:
    """As if web processes had been answering for so long, and last said so so long ago."""
    _run(
        """
        INSERT INTO dispatch_liveness (id, since, seen_at)
        VALUES (1, clock_timestamp() - make_interval(secs => %(since)s),
                clock_timestamp() - make_interval(secs => %(seen)s))
        ON CONFLICT (id) DO UPDATE SET since = excluded.since, seen_at = excluded.seen_at
        """,
        since=since_seconds,
        seen=seen_seconds,
    )


def let_retries_be_due(run_id: UUID) -> None:
    """As if the waiting time of every retry of the run were over."""
    _run(
        "UPDATE workflows_task SET ready_at = clock_timestamp() - interval '1 millisecond'"
        " WHERE run_id = %(id)s AND state = 'waiting_retry'",
        id=run_id,
    )


def let_turn_come(run_id: UUID, *, seconds: float) -> None:
    """As if the run had been started, or last served, so much earlier."""
    _run(
        """
        UPDATE workflows_run
        SET turn_at = turn_at - make_interval(secs => %(seconds)s),
            last_dispatched_at = last_dispatched_at - make_interval(secs => %(seconds)s),
            created_at = created_at - make_interval(secs => %(seconds)s)
        WHERE id = %(id)s
        """,
        id=run_id,
        seconds=seconds,
    )
    _run(
        "UPDATE workflows_readyqueue SET turn_at = turn_at - make_interval(secs => %(seconds)s) WHERE run_id = %(id)s",
        id=run_id,
        seconds=seconds,
    )
