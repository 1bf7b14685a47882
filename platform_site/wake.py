"""Wake-ups: tell the coordinator, or whoever waits for work, that looking is worth while now.

``wake.coordinator()`` sends a NOTIFY with an empty payload, after the caller's transaction committed and
never inside it: a NOTIFY inside a transaction takes a lock that serialises the commits of the whole
database. Who waits for work is woken by the coordinator, which sends on its own session. A wake-up carries
no facts. Whoever is woken reads the tables, and reads them once in a while without being woken, so a lost
wake-up costs latency and nothing else.

A burst is thinned out: the first goes at once, then at most one in 5 ms per process and channel. One that is
held back goes at the end of the 5 ms; it is never dropped, as it may stand for the last commit of the burst.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import Error, connection, transaction

COORDINATOR_CHANNEL = "workload_coordinator"
WORKERS_CHANNEL = "workload_workers"
SPACING_SECONDS = 0.005

logger = logging.getLogger(__name__)


def send(channel: str) -> None:
    """NOTIFY now, on this thread's connection, outside any transaction. Raises database errors."""
    if connection.in_atomic_block:
        raise RuntimeError("A wake-up is never sent inside a transaction; use wake.coordinator().")
    with connection.cursor() as cursor:
        # It carries nothing that a crash could lose, so nobody waits for the disk.
        cursor.execute("SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, '')", [channel])


class Channel:
    """One channel of this process, with its memory of when it last sent."""

    def __init__(
        self,
        name: str,
        *,
        sender: Callable[[str], None] = send,
        spacing: float = SPACING_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._sender = sender
        self._spacing = spacing
        self._clock = clock
        self._lock = threading.Lock()
        self._sent_at = float("-inf")
        self._late: threading.Timer | None = None

    def wake(self) -> None:
        """Send after the surrounding transaction commits, or now without one. Raises no database error."""
        transaction.on_commit(self._send_or_hold)

    def _send_or_hold(self) -> None:
        with self._lock:
            # A timer of before a fork is not alive in the child, which so makes one of its own.
            if self._late is not None and self._late.is_alive():
                return  # the one to come speaks for this one too
            remaining = self._sent_at + self._spacing - self._clock()
            if remaining > 0:
                self._late = threading.Timer(remaining, self._send_late)
                self._late.start()
                return
            self._sent_at = self._clock()
        self._try_to_send()

    def _send_late(self) -> None:
        with self._lock:
            # Forgotten before it is sent: whoever commits from here on must not count on this one.
            self._late = None
            self._sent_at = self._clock()
        try:
            self._try_to_send()
        finally:
            connection.close()  # this thread's own, opened for the one statement

    def _try_to_send(self) -> None:
        try:
            self._sender(self.name)
        except Error as error:
            # The state is committed and the listeners poll: failing the caller now would report a
            # success as an error. The database's trouble shows wherever it matters.
            logger.debug("A wake-up was not sent: %s", error)


_COORDINATOR = Channel(COORDINATOR_CHANNEL)


def coordinator() -> None:
    """Something became ready, due or canceled: the leading coordinator should pass now."""
    _COORDINATOR.wake()
