"""Claims that wait for work, in one web process: a bounded number of threads, one listener that wakes them.

A waiter holds a thread and no database connection. It is known to the listener from before it looks, so a
wake-up between its look and its sleep makes it look once more instead of being lost. The listener reacts to
NOTIFY, and looks by itself once a second, so a dead listening session costs that second and nothing else. It
counts the pending dispatches per class in one query and wakes, per class, that many waiters which accept it.

The same thread says that the control plane answers (the liveness row) once per heartbeat interval: workers
count as silent only while they could have been heard.
"""

from __future__ import annotations

import functools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from tenacity import Retrying, retry_if_exception_type, stop_when_event_set, wait_random_exponential

from dispatch.compatibility import Acceptor, ClassFacts, accepts
from dispatch.liveness import liveness_gap
from platform_site import wake
from platform_site.statements import Statements

POLL_SECONDS = 1.0
ALIVE_CHECK_SECONDS = 0.2
COUNT_SPACING_SECONDS = 0.005
COUNT_REST = 2
"""After a count the listener rests twice as long as it took: behind a long queue wake-ups share a count."""
RECONNECT_SECONDS = 5.0
LISTEN = f"LISTEN {wake.WORKERS_CHANNEL}"

logger = logging.getLogger(__name__)
_sql = Statements("dispatch.sql")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Waited(Generic[T]):
    """What the last look found. ``refused``: no place was free, so it was the only look; ask again later."""

    found: T
    refused: bool = False


@dataclass(slots=True, eq=False)
class _Waiter:
    """One waiting claim. ``asleep`` and ``woken`` change under the lock of the ``Waiters``."""

    acceptor: Acceptor
    changed: threading.Condition
    asleep: bool = False
    woken: bool = False


class Waiters:
    """The places of one process in which a claim may wait, and who sits in them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._seated: dict[_Waiter, None] = {}  # a dict, because it keeps the order of arrival
        self._closing = False

    def wait(
        self, look: Callable[[], T], *, acceptor: Acceptor, timeout: float, done: Callable[[T], bool] = bool
    ) -> Waited[T]:
        """Look for work, and again whenever some may have come, until ``done`` or ``timeout`` seconds passed.

        ``look`` is called at least once; what it raises passes through. Between looks the caller's database
        connection is given back, so ``look`` must not rely on an open transaction.
        """
        deadline = time.monotonic() + timeout
        waiter = self._seat(acceptor)
        if waiter is None:
            return Waited(look(), refused=True)
        try:
            while True:
                found = look()
                over = time.monotonic() >= deadline
                if done(found) or over or not self._sleep(waiter, deadline):
                    return Waited(found)
        finally:
            self._leave(waiter)

    def __len__(self) -> int:
        return len(self._seated)

    def wake(self, pending: Iterable[tuple[ClassFacts, int]]) -> None:
        """For each class, wake as many sleepers that accept it as it has pending; longest waiting first.

        Whoever is looking just now is told to look once more before it sleeps, and takes no sleeper's turn:
        it may have looked before the work came.
        """
        with self._lock:
            for task_class, count in pending:
                left = count
                for waiter in self._seated:
                    if accepts(waiter.acceptor, task_class) and (left > 0 or not waiter.asleep):
                        left -= waiter.asleep  # also one woken before, which is still on its way
                        self._rouse(waiter)

    def close(self) -> None:
        """Let everybody go, now and from now on: the process ends."""
        with self._lock:
            self._closing = True
            for waiter in self._seated:
                self._rouse(waiter)

    def _rouse(self, waiter: _Waiter) -> None:
        waiter.woken = True
        waiter.changed.notify()

    def _seat(self, acceptor: Acceptor) -> _Waiter | None:
        with self._lock:
            if self._closing or len(self._seated) >= self._limit:
                return None
            waiter = _Waiter(acceptor, threading.Condition(self._lock))
            self._seated[waiter] = None
            return waiter

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            del self._seated[waiter]

    def _sleep(self, waiter: _Waiter, deadline: float) -> bool:
        """Sleep unless woken since the look began; whether to look again, if only once more at the end."""
        _give_connection_back()
        with self._lock:
            waiter.asleep = True
            while not (waiter.woken or self._closing):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                waiter.changed.wait(remaining)
            waiter.asleep = waiter.woken = False
            return not self._closing


Connect = Callable[[], psycopg.Connection[Any]]


def direct_connection() -> psycopg.Connection[Any]:
    """A session of its own beside the pool, in autocommit: LISTEN belongs to a session."""
    params = connections[DEFAULT_DB_ALIAS].get_connection_params()
    # Django's own types and cursor; here the driver's plain ones serve.
    kept = {name: value for name, value in params.items() if name not in ("context", "cursor_factory")}
    kept["application_name"] = f"{kept.get('application_name', 'workload')}-listener"
    return psycopg.connect(**kept, autocommit=True)


class Listener:
    """The thread that wakes the waiters and keeps the liveness row. Reconnects for as long as it runs."""

    def __init__(
        self,
        waiters: Waiters,
        *,
        heartbeat_interval: timedelta,
        connect: Connect = direct_connection,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._waiters = waiters
        self._connect = connect
        self._poll_seconds = poll_seconds
        self._heartbeat_interval = heartbeat_interval
        self._alive: Callable[[], bool] = lambda: True
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen_due = self._poll_due = self._count_not_before = float("-inf")

    def start(self, *, alive: Callable[[], bool] | None = None) -> None:
        """Run, if it does not yet; ``alive`` turning false lets all waiters go and ends the thread.

        A thread of before a fork is not alive in the child, where this so starts another.
        """
        with self._starting:
            if alive is not None:
                self._alive = alive
            if self._stopped.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="work-listener", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let all waiters go, end the thread and close its session; returns when that is done."""
        self._stopped.set()
        self._waiters.close()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended():
            try:
                with self._connected() as session:
                    session.execute(LISTEN)
                    while not self._ended():
                        self._turn(session)
            except Exception as error:
                if self._stopped.is_set():
                    return
                logger.warning(
                    "The listener starts again: %s", error, exc_info=not isinstance(error, psycopg.Error)
                )
                self._pause(random.uniform(0.1, 0.5))  # noqa: S311 - spreads processes, guards nothing

    def _connected(self) -> psycopg.Connection[Any]:
        """A new session, however long the database stays away; every process comes back at its own moment."""
        return Retrying(
            retry=retry_if_exception_type(psycopg.OperationalError),
            wait=wait_random_exponential(multiplier=0.25, max=RECONNECT_SECONDS),
            stop=stop_when_event_set(self._stopped),
            sleep=self._pause,
            reraise=True,
        )(self._connect)

    def _turn(self, session: psycopg.Connection[Any]) -> None:
        """Wait a moment for a wake-up, then do what is due."""
        now = time.monotonic()
        if now >= self._seen_due:
            gap = liveness_gap(self._heartbeat_interval)
            session.execute(_sql.texts["liveness_seen"], {"gap": gap})
            self._seen_due = now + self._heartbeat_interval.total_seconds()
        rest = min(self._seen_due - now, self._poll_due - now, ALIVE_CHECK_SECONDS)
        woken = bool(list(session.notifies(timeout=max(0.0, rest), stop_after=1)))
        if woken:
            self._stopped.wait(max(0.0, self._count_not_before - time.monotonic()))
        if woken or time.monotonic() >= self._poll_due:
            self._count(session)

    def _count(self, session: psycopg.Connection[Any]) -> None:
        started = time.monotonic()
        self._poll_due = started + self._poll_seconds
        if not len(self._waiters):
            return  # whoever sits down from now on looks for itself
        rows = session.execute(_sql.texts["pending_by_class"]).fetchall()
        self._waiters.wake((ClassFacts(*facts), pending) for *facts, pending in rows)
        took = time.monotonic() - started
        self._count_not_before = started + took + max(COUNT_SPACING_SECONDS, COUNT_REST * took)

    def _ended(self) -> bool:
        if not self._stopped.is_set() and not self._alive():
            self._stopped.set()
            self._waiters.close()
        return self._stopped.is_set()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._ended() and (remaining := until - time.monotonic()) > 0:
            self._stopped.wait(min(remaining, ALIVE_CHECK_SECONDS))


class WorkWakeups:
    """Waiters and listener of one process. The listener starts with the first wait, so after any fork."""

    def __init__(self, waiters: Waiters, listener: Listener) -> None:
        self._waiters = waiters
        self._listener = listener

    def start(self, *, alive: Callable[[], bool] | None = None) -> None:
        """Begin to listen and to keep the liveness row; for a process that serves workers, at its start."""
        self._listener.start(alive=alive)

    def wait(
        self, look: Callable[[], T], *, acceptor: Acceptor, timeout: float, done: Callable[[T], bool] = bool
    ) -> Waited[T]:
        """See ``Waiters.wait``. Without time to wait it is one look, and takes no place."""
        if timeout <= 0:
            return Waited(look())
        self._listener.start()
        return self._waiters.wait(look, acceptor=acceptor, timeout=timeout, done=done)

    def stop(self) -> None:
        """Let all waiters go and end the listener, for good."""
        self._listener.stop()


@functools.cache
def process_wakeups() -> WorkWakeups:
    """Those of this process, made when first asked for."""
    waiters = Waiters(settings.WORKLOAD.claim_waiters)
    interval = timedelta(milliseconds=settings.WORKLOAD.heartbeat_interval_ms)
    return WorkWakeups(waiters, Listener(waiters, heartbeat_interval=interval))


def _give_connection_back() -> None:
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:  # only a test's own transaction spans a wait
        connection.close()
