"""The process around the worker: exit codes, signals, and waits that can be interrupted."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from types import FrameType

Clock = Callable[[], float]
"""Monotonic seconds; `time.monotonic` outside tests."""


class ExitCode(IntEnum):
    """How a worker process ends. A supervisor restarts on 1, 3, 4 and 5; 2 and 6 need a person."""

    CLEAN = 0
    """Drained: nothing is left behind."""
    INTERNAL = 1
    """A thread of the worker itself failed; the traceback is in the log."""
    USAGE = 2
    """An option or environment variable is wrong."""
    CANNOT_REGISTER = 3
    """The control plane refused the registration or did not answer."""
    SESSION_ENDED = 4
    """The control plane no longer accepts this session; start again to register anew."""
    ABANDONED = 5
    """The grace period ended, or a second signal came, with leases still held; they will expire."""
    LEASE_TOO_SHORT = 6
    """The lease of the control plane does not exceed two heartbeats plus the safety margin."""


class StopRequests:
    """Counts requests to stop (signals) and wakes the main thread.

    A signal handler runs between two bytecodes of the main thread, which may hold any lock at that moment,
    also the one inside `threading.Event`. So `request` takes no lock: it appends to a deque and writes a byte
    to a pipe, and the main thread waits on that pipe. The pipe lives as long as the process: a
    thread that outlasts the worker, waiting for a last answer, may still write to it.
    """

    def __init__(self) -> None:
        self._requests: deque[None] = deque()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    @property
    def count(self) -> int:
        """How often a stop was requested: 1 asks for a drain, 2 for an end at once."""
        return len(self._requests)

    def request(self) -> None:
        """Ask once more to stop. Safe in a signal handler and in any thread."""
        self._requests.append(None)
        self.poke()

    def poke(self) -> None:
        """Wake the main thread so that it looks at the state of the worker again."""
        try:
            os.write(self._writer, b"x")
        except BlockingIOError:
            return  # the pipe is full of wake-ups already

    def wait(self, timeout: float | None) -> None:
        """Return after a poke, a request, or `timeout` seconds (None: no limit)."""
        ready, _, _ = select.select([self._reader], [], [], timeout)
        if ready:
            os.read(self._reader, 4096)

    def listen(self) -> Callable[[], None]:
        """Route SIGTERM and SIGINT here; the returned function restores the handlers of before."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.request()

        previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
        # The kernel may deliver to any thread, which does not end a wait of the main thread; this byte does.
        before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

        def restore() -> None:
            signal.set_wakeup_fd(before)
            for number, handler in previous.items():
                signal.signal(number, handler)

        return restore


class Backoff:
    """Growing pauses with real random jitter: each is uniform in [bound / 2, bound], the bound doubling.

    `first` and `last` are the smallest and the largest pause in seconds. Workers that lost the same server at
    the same moment so come back spread out.
    """

    def __init__(
        self, first: float = 0.25, last: float = 5.0, *, source: random.Random | None = None
    ) -> None:
        self._start = min(first * 2, last)
        self._last = last
        self._bound = self._start
        self._random = source or random.SystemRandom()

    def next(self) -> float:
        """The next pause in seconds."""
        bound = self._bound
        self._bound = min(bound * 2, self._last)
        return self._random.uniform(bound / 2, bound)

    def reset(self) -> None:
        """Something succeeded: the next pause is short again."""
        self._bound = self._start


def monotonic() -> float:
    """Seconds of the clock that every local deadline is measured on."""
    return time.monotonic()
