"""A thread that keeps its own database session between steps, so that one test can be two processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection

T = TypeVar("T")

STEP_SECONDS = 15.0


def end_session() -> None:
    """Close the calling thread's session; the next statement silently opens another."""
    connection.close()


class Actor:
    """Runs one step at a time on its thread; the step's result or exception comes back to the caller."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    def does(self, step: Callable[[], T]) -> T:
        return self._pool.submit(step).result(STEP_SECONDS)

    def backend_pid(self) -> int:
        """The process id of its session."""

        def ask() -> int:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                return int(cursor.fetchone()[0])

        return self.does(ask)

    def leaves(self) -> None:
        """End the session and the thread."""
        self.does(end_session)
        self._pool.shutdown()


@contextmanager
def actor(name: str) -> Iterator[Actor]:
    someone = Actor(name)
    try:
        yield someone
    finally:
        someone.leaves()
