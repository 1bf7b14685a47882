"""Where an operation can be stopped in the middle: the row that it locks last, held by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar
from uuid import UUID

from django.db import connection

from platform_site.api.errors import DomainError
from tests.support.races import HeldLock, held_lock, wait_for

T = TypeVar("T")


def hold_worker(worker_id: UUID) -> AbstractContextManager[HeldLock]:
    """Claims stop here with run and dispatches locked; so does whoever settles a lease of a draining worker."""
    return held_lock("SELECT 1 FROM dispatch_worker WHERE id = %s FOR NO KEY UPDATE", [worker_id])


def hold_run(run_id: UUID) -> AbstractContextManager[HeldLock]:
    """Whoever moves anything of the run stops here with nothing locked."""
    return held_lock("SELECT 1 FROM workflows_run WHERE id = %s FOR NO KEY UPDATE", [run_id])


def hold_ready_queue(run_id: UUID) -> AbstractContextManager[HeldLock]:
    """A ledger's flush that opens, closes or counts the run's queue stops here: all is decided, nothing committed."""
    return held_lock("SELECT 1 FROM workflows_readyqueue WHERE run_id = %s FOR UPDATE", [run_id])


def raised(call: Callable[[], T]) -> Callable[[], T | DomainError]:
    """The call, with what it raises as its answer."""

    def answer() -> T | DomainError:
        try:
            return call()
        except DomainError as error:
            return error

    return answer


def wait_for_expiry(dispatch_id: UUID) -> None:
    """Until the database's clock has passed the committed expiry of the lease."""

    def expired() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT lease_expires_at <= clock_timestamp() FROM dispatch_dispatch WHERE id = %s",
                [dispatch_id],
            )
            return bool(cursor.fetchone()[0])

    wait_for(expired, "the lease runs out")
