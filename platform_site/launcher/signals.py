"""SIGINT and SIGTERM for a process that runs a platform: the first stops it, the second does not wait."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Protocol


class Abortable(Protocol):
    """What a second signal cuts short."""

    def abort(self) -> None: ...


class StopSignals:
    """Installed when made; made in the main thread.

    Until ``wait`` is called a signal raises KeyboardInterrupt, so that a start in progress ends where it is;
    during ``wait`` it ends the wait; after ``stopping`` it makes the stop wait for nobody.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, platform: Abortable) -> None:
        self._platform = platform
        self._stop = threading.Event()
        self._phase = "starting"
        self._previous = {number: signal.signal(number, self._handle) for number in self.NUMBERS}

    def wait(self) -> None:
        """Until the first signal."""
        self._phase = "running"
        self._stop.wait()

    @property
    def stop_requested(self) -> bool:
        return self._stop.is_set()

    def stopping(self) -> None:
        """From now on signals abort."""
        self._phase = "stopping"

    def restore(self) -> None:
        """Put back the handlers that were there before."""
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._phase == "stopping" or self._stop.is_set():
            self._platform.abort()
        elif self._phase == "running":
            self._stop.set()
        else:
            self._phase = "stopping"
            raise KeyboardInterrupt
