"""Keeping leases: the heart renews them and hears of revocations, the watch ends them in time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from workers.account import Account, Snapshot
from workers.client import ControlPlane, Refused, SessionEnded, Unavailable
from workers.process import Backoff, Clock

logger = logging.getLogger("workers.leases")


class Heart:
    """Renews all leases every interval, also when there are none; sooner after a failure."""

    def __init__(
        self,
        plane: ControlPlane,
        account: Account,
        *,
        interval: float,
        clock: Clock,
        stopping: threading.Event,
        snapshot: Callable[[], Snapshot],
        ended: Callable[[SessionEnded], None],
        draining: Callable[[str], None],
    ) -> None:
        self._plane = plane
        self._account = account
        self._interval = interval
        self._clock = clock
        self._stopping = stopping
        self._snapshot = snapshot
        self._ended = ended
        self._draining = draining
        self._backoff = Backoff(min(0.25, interval / 4), interval)

    def run(self) -> None:
        """Beat until the worker stops or its session ends."""
        pause = self._interval
        while not self._stopping.wait(pause):
            try:
                pause = self.beat()
            except SessionEnded as error:
                self._ended(error)
                return

    def beat(self) -> float:
        """One heartbeat; the pause until the next, in seconds from now."""
        sent_at = self._clock()
        leases, through = self._snapshot()
        try:
            answer = self._plane.heartbeat(leases=leases, answered_through=through)
        except (Unavailable, Refused) as error:
            logger.warning("heartbeat failed: %s", error.code, extra={"count": len(leases)})
            return self._backoff.next()
        self._backoff.reset()
        for held in self._account.renewed(answer, sent_at=sent_at):
            logger.warning("lease lost: the control plane ended it", extra=held.fields)
        if answer.worker_state != "active":
            self._draining(answer.worker_state)
        return max(0.0, self._interval - (self._clock() - sent_at))


class Watch:
    """Ends executions at their local safety deadline, whatever the network does."""

    def __init__(self, account: Account, *, stopping: threading.Event) -> None:
        self._account = account
        self._stopping = stopping

    def run(self) -> None:
        """Sleep from deadline to deadline until the worker stops."""
        while not self._stopping.is_set():
            for held in self._account.expire():
                reason = "attempt deadline" if held.timed_out else "lease not renewed"
                logger.warning("execution stopped: %s", reason, extra=held.fields)
            self._account.wait_for_deadline()
