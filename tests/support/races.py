"""Force an interleaving and prove it: hold a lock, start a rival, wait until PostgreSQL says it is stuck.

    with held_lock("SELECT 1 FROM workflows_run WHERE id = %s FOR UPDATE", [run_id]) as lock:
        with rival(lambda: complete(...)) as other:
            other.wait_until_blocked()
            lock.release()
            assert other.result() == ...

Nothing here sleeps for luck: every wait is on a condition and ends in a failure that names who did not do
what. A rival has its own session with short timeouts, so a deadlock is red within a second and never a hang.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

T = TypeVar("T")

DEADLINE_SECONDS = 10.0
DEADLOCK_TIMEOUT = "100ms"
STATEMENT_TIMEOUT = "8s"

_BLOCKED = """
    SELECT 1 FROM pg_stat_activity
    WHERE application_name = %s AND wait_event_type = 'Lock' AND datname = current_database()
"""

_numbers = itertools.count(1)


def wait_for(condition: Callable[[], object], message: str, *, timeout: float = DEADLINE_SECONDS) -> None:
    """Poll until the condition is true; AssertionError with the message when the deadline passes."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {timeout:g} s: {message}")
        time.sleep(0.01)


def new_session(name: str = "observer") -> psycopg.Connection[Any]:
    """A session beside Django's, in autocommit, under a name of its own."""
    params = connections[DEFAULT_DB_ALIAS].get_connection_params()
    kept = {key: value for key, value in params.items() if key not in ("context", "cursor_factory")}
    return psycopg.connect(**{**kept, "application_name": name}, autocommit=True)


class HeldLock:
    """An open transaction that holds what its statement locked, until ``release``."""

    def __init__(self) -> None:
        self.session = new_session(f"held-lock-{next(_numbers)}")
        self.session.execute("SELECT set_config('deadlock_timeout', %s, false)", [DEADLOCK_TIMEOUT])
        self.session.execute("BEGIN")

    def take(self, statement: str, params: Sequence[Any] = ()) -> None:
        """Lock something, as well as what is held."""
        self.session.execute(statement, params)

    def release(self) -> None:
        """End the transaction: commit, or roll back after an error. Again does nothing."""
        if not self.session.closed:
            self.session.execute("COMMIT")
            self.session.close()


@contextmanager
def held_lock(statement: str, params: Sequence[Any] = ()) -> Iterator[HeldLock]:
    """Take a lock by hand, in a session of its own, for the block or until released."""
    lock = HeldLock()
    try:
        lock.take(statement, params)
        yield lock
    finally:
        lock.release()


class Rival(Generic[T]):
    """A function on its own thread and session. What it raised is raised again by ``result``."""

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self.name = name
        self._function = function
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def result(self, timeout: float = DEADLINE_SECONDS) -> T:
        """What the function returned; its exception, if it raised one."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise AssertionError(f"{self.name} did not end within {timeout:g} s.")
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def wait_until_blocked(self, timeout: float = DEADLINE_SECONDS) -> None:
        """Return once its session waits for a lock; fail at once, with its own error, if it ends instead."""
        wait_until_blocked(self.name, timeout=timeout, still_running=self._must_run)

    def _must_run(self) -> None:
        if not self.running:
            self.result()
            raise AssertionError(f"{self.name} ended instead of waiting for a lock.")

    def _run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('application_name', %s, false)", [self.name])
                cursor.execute("SELECT set_config('statement_timeout', %s, false)", [STATEMENT_TIMEOUT])
                cursor.execute("SELECT set_config('deadlock_timeout', %s, false)", [DEADLOCK_TIMEOUT])
            self._outcome.append(self._function())
        except BaseException as error:  # noqa: BLE001 - kept for the main thread, which raises it
            self._error = error
        finally:
            connection.close()


@contextmanager
def rival(function: Callable[[], T], *, name: str = "rival") -> Iterator[Rival[T]]:
    """Start the function in a thread; the block's end waits for it, and raises what nobody asked for."""
    contender = Rival(function, f"{name}-{next(_numbers)}")
    yield contender
    contender.result()


def wait_until_blocked(
    application_name: str,
    *,
    timeout: float = DEADLINE_SECONDS,
    still_running: Callable[[], None] = lambda: None,
) -> None:
    """Ask PostgreSQL until the session of that name waits for a heavyweight lock."""
    with new_session() as observer:

        def blocked() -> bool:
            if observer.execute(_BLOCKED, [application_name]).fetchall():
                return True
            still_running()
            return False

        wait_for(blocked, f"{application_name} waits for a lock", timeout=timeout)
