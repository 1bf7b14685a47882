"""Let a worker finish and leave: it takes nothing more, and stops when it holds nothing."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from dispatch.errors import WorkerNotFound
from dispatch.leadership import Fence
from dispatch.statements import sql
from dispatch.states import WorkerState
from platform_site.database import database_now


def drain(*, worker_id: UUID) -> WorkerState:
    """active -> draining with leases, else -> stopped; a repeat changes nothing more. Locks the worker.

    Raises WorkerNotFound.
    """
    with transaction.atomic(durable=True):
        if not sql.rows("lock_worker", worker_id=worker_id):
            raise WorkerNotFound
        sql.run("drain_worker", worker_id=worker_id, now=database_now())
        [(state, _, _)] = sql.rows("lock_worker", worker_id=worker_id)
    return WorkerState(state)


def stop_drained(*, fence: Fence) -> int:
    """Stop every draining worker without leases; how many were stopped.

    The truth behind the shortcut in ``complete``: a completion that saw the worker active before the drain
    committed leaves it draining, and this finds it.
    """
    with transaction.atomic(durable=True):
        fence.check()
        workers = [worker_id for (worker_id,) in sql.rows("lock_drained_workers", worker_ids=None)]
        if not workers:
            transaction.set_rollback(
                True
            )  # nothing to keep: spares the durable commit, once a second for ever
            return 0
        return sql.run("stop_drained_workers", worker_ids=workers, now=database_now())
