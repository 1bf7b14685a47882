"""Log lines and progress of executions, sent in the background in bounded batches.

An action is never held up for longer than `BLOCK_SECONDS` by a slow control plane: when the buffer of its
attempt stays full, lines are dropped, counted, and the count is told in a line of its own. Progress is the
latest only, once a second at most. Before a result is submitted the lines of its attempt are flushed, because
the control plane takes lines under a valid lease only.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass, field

from workers.account import Held
from workers.client import ControlPlane, ControlPlaneError, Refused, SessionEnded, Unavailable
from workers.process import Backoff, Clock

logger = logging.getLogger("workers.reports")

LEVELS = ("debug", "info", "warning", "error")
MAX_LINE_BYTES = 8 * 1024
MAX_TEXT_BYTES = 256
BATCH_LINES = 200
BATCH_BYTES = 256 * 1024
BUFFER_BYTES = 512 * 1024
BLOCK_SECONDS = 1.0
FLUSH_SECONDS = 2.0
PROGRESS_SECONDS = 1.0
_LINE_OVERHEAD = 64


def cut(text: str, max_bytes: int) -> str:
    """`text` as storable UTF-8 of at most `max_bytes`."""
    encoded = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode(errors="replace")
    return encoded[:max_bytes].decode(errors="ignore")


@dataclass(slots=True)
class _Buffer:
    held: Held
    lines: deque[tuple[str, str]] = field(default_factory=deque)
    size: int = 0
    dropped: int = 0
    sending: bool = False
    closed: bool = False
    progress: tuple[float | None, str] | None = None
    progress_due: float = 0.0


class Reports:
    """Buffers per attempt and one thread that sends them."""

    def __init__(self, plane: ControlPlane, *, clock: Clock, stopping: threading.Event) -> None:
        self._plane = plane
        self._clock = clock
        self._stopping = stopping
        self._condition = threading.Condition()
        self._buffers: dict[str, _Buffer] = {}
        self._backoff = Backoff()

    # -- for executions ----------------------------------------------------------------------------

    def log(self, held: Held, level: str, text: str) -> None:
        """Keep one line; cut to 8 KiB."""
        line = (level if level in LEVELS else "info", cut(text, MAX_LINE_BYTES))
        size = len(line[1]) + _LINE_OVERHEAD
        with self._condition:
            buffer = self._buffer(held)
            fits = self._condition.wait_for(
                lambda: buffer.closed or buffer.size + size <= BUFFER_BYTES, timeout=BLOCK_SECONDS
            )
            if buffer.closed:
                return
            if not fits:
                buffer.dropped += 1
                return
            buffer.lines.append(line)
            buffer.size += size
            self._condition.notify_all()

    def progress(self, held: Held, percent: float | None, text: str) -> None:
        """Remember the latest progress."""
        with self._condition:
            buffer = self._buffer(held)
            buffer.progress = (
                None if percent is None else min(100.0, max(0.0, percent)),
                cut(text, MAX_TEXT_BYTES),
            )
            self._condition.notify_all()

    def finish(self, held: Held) -> None:
        """The execution ended: wait a bounded time until its lines are stored, then forget it."""
        with self._condition:
            buffer = self._buffers.get(held.lease.dispatch_id)
            if buffer is None:
                return
            buffer.progress = None
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: buffer.closed or not (buffer.lines or buffer.dropped or buffer.sending),
                timeout=FLUSH_SECONDS,
            )
            del self._buffers[held.lease.dispatch_id]
            unsent = len(buffer.lines) + buffer.dropped
        if unsent and not buffer.closed:
            logger.warning("%s log lines were not stored", unsent, extra=held.fields)

    def _buffer(self, held: Held) -> _Buffer:
        return self._buffers.setdefault(held.lease.dispatch_id, _Buffer(held))

    # -- the thread --------------------------------------------------------------------------------

    def run(self) -> None:
        """Send what is due until the worker stops."""
        while not self._stopping.is_set():
            with self._condition:
                buffer = self._due()
                if buffer is None:
                    self._condition.wait(self._until_due())
                    continue
                buffer.sending = True
                lines, progress = self._take(buffer)
            self._send(buffer, lines, progress)

    def wake(self) -> None:
        """Let the thread look whether the worker stops."""
        with self._condition:
            self._condition.notify_all()

    def _due(self) -> _Buffer | None:
        now = self._clock()
        for buffer in self._buffers.values():
            if not buffer.closed and (
                buffer.lines or buffer.dropped or (buffer.progress and buffer.progress_due <= now)
            ):
                return buffer
        return None

    def _until_due(self) -> float | None:
        dues = [
            buffer.progress_due for buffer in self._buffers.values() if buffer.progress and not buffer.closed
        ]
        return max(0.0, min(dues) - self._clock()) if dues else None

    def _take(self, buffer: _Buffer) -> tuple[list[tuple[str, str]], tuple[float | None, str] | None]:
        lines: list[tuple[str, str]] = []
        size = 0
        while buffer.lines and len(lines) < BATCH_LINES and size < BATCH_BYTES:
            line = buffer.lines.popleft()
            lines.append(line)
            size += len(line[1]) + _LINE_OVERHEAD
        buffer.size -= size
        if not buffer.lines and buffer.dropped:
            lines.append(("warning", f"{buffer.dropped} lines dropped here: the control plane was too slow"))
            buffer.dropped = 0
        progress = buffer.progress if buffer.progress_due <= self._clock() else None
        if progress:
            buffer.progress = None
            buffer.progress_due = self._clock() + PROGRESS_SECONDS
        # The next turn is another attempt's: one chatty action does not starve the others.
        self._buffers[buffer.held.lease.dispatch_id] = self._buffers.pop(buffer.held.lease.dispatch_id)
        return lines, progress

    def _send(
        self, buffer: _Buffer, lines: list[tuple[str, str]], progress: tuple[float | None, str] | None
    ) -> None:
        lease = buffer.held.lease
        closed, pause = False, 0.0
        try:
            if lines:
                closed = self._plane.logs(lease.dispatch_id, lease.lease_token, lines)
                lines = []
            if progress:
                percent, text = progress
                self._plane.progress(lease.dispatch_id, lease.lease_token, percent=percent, text=text)
            self._backoff.reset()
        except Unavailable as error:
            pause = max(self._backoff.next(), error.retry_after_ms / 1000)
        except (Refused, SessionEnded) as error:
            closed = True
            self._note_refusal(buffer, error)
        with self._condition:
            buffer.sending = False
            buffer.closed = buffer.closed or closed
            if closed:
                buffer.lines.clear()
            elif lines:
                buffer.lines.extendleft(reversed(lines))
                buffer.size += sum(len(text) + _LINE_OVERHEAD for _, text in lines)
            self._condition.notify_all()
        if pause:
            self._stopping.wait(pause)

    def _note_refusal(self, buffer: _Buffer, error: ControlPlaneError) -> None:
        logger.info("log lines or progress refused: %s", error.code, extra=buffer.held.fields)
