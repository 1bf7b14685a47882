"""A request to stop that interrupts a wait: a flag for the loop, a pipe for its select."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Self


class StopRequest:
    """Set once, by a signal handler or another thread. Used as a context, which closes the pipe.

    A handler may run while the main thread holds any lock, so ``request`` takes none: it writes a byte.
    """

    def __init__(self) -> None:
        self.requested = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Readable from the first request on, for ever: nobody reads the byte."""
        return self._reader

    def request(self) -> None:
        """Ask for the end. Again does no harm."""
        if not self.requested:
            self.requested = True
            os.write(self._writer, b"x")

    def listen(self) -> None:
        """Route SIGTERM and SIGINT here, for the life of the process."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.request()

        signal.signal(signal.SIGTERM, handle)
        signal.signal(signal.SIGINT, handle)
