"""Child processes that are started again when they end, and stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from platform_site.launcher import leash

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
STEADY_SECONDS = 30.0
"""A child that ran so long starts again after the first pause."""
LINE_LIMIT = 64 * 1024

Output = Callable[[str, str], None]
"""Takes a child's name and one line of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to run one child."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    descriptors: Sequence[int] = ()
    """Open files that the child inherits."""
    grace_seconds: float = 10.0
    """Time to end after SIGTERM, before it is killed."""


class Child:
    """One command and its process of the moment."""

    def __init__(self, command: Command, output: Output) -> None:
        self.command = command
        self.starts = 0
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._started_at = 0.0
        self._pause = FIRST_PAUSE
        self._next_start = 0.0

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def pid(self) -> int | None:
        """Of the running process; None between two of them."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Run the command in a session of its own, on a leash."""
        command = self.command
        self._process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
            [sys.executable, "-S", str(Path(leash.__file__)), str(os.getpid()), *command.arguments],
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=command.descriptors,
            # Ctrl-C reaches the parent alone, which then stops its children in order.
            start_new_session=True,
        )
        self.starts += 1
        self._started_at = time.monotonic()
        self._reader = threading.Thread(
            target=self._read, args=[self._process], name=f"output of {self.name}", daemon=True
        )
        self._reader.start()

    def tend(self) -> None:
        """Notice an end, say it, and start again when its pause is over."""
        now = time.monotonic()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._finish()
            if now - self._started_at >= STEADY_SECONDS:
                self._pause = FIRST_PAUSE
            self._say(f"ended {describe(code)}; starting it again in {self._pause:g} s")
            self._next_start = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif now >= self._next_start:
            try:
                self.start()
            except OSError as error:  # no memory or no process to be had just now
                self._say(f"cannot be started: {error}")
                self._next_start = now + LONGEST_PAUSE

    def signal(self, number: signal.Signals) -> None:
        """To the child alone; SIGKILL to its whole session, so that nothing of it stays."""
        if self._process is None or self._process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)

    def ended(self) -> bool:
        """Whether no process is left; takes note of its end."""
        if self._process is not None and self._process.poll() is not None:
            self._finish()
        return self._process is None

    def _finish(self) -> None:
        if self._reader is not None:
            self._reader.join(timeout=2)  # a grandchild may hold it open longer
        self._process = self._reader = None

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            raise RuntimeError("A child was started without a pipe.")
        with process.stdout as lines:
            while line := lines.readline(LINE_LIMIT):
                self._output(self.name, line.decode("utf-8", "replace").rstrip("\n"))

    def _say(self, sentence: str) -> None:
        self._output(self.name, f"[{sentence}]")


def describe(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


class Supervisor:
    """Runs children until told to stop. One thread starts and tends them all.

    The kernel ties a leash to the thread that started the child, so that thread outlives them all.
    """

    PASS_SECONDS = 0.1

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._stopping: list[Child] = []
        self._changed = threading.Condition()
        self._abort = False
        self._close = False
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    @property
    def children(self) -> Sequence[Child]:
        return tuple(self._children)

    def add(self, child: Child) -> None:
        """Start a child and keep it running."""
        with self._changed:
            self._children.append(child)
            self._changed.notify_all()

    def stop(self, children: Sequence[Child]) -> None:
        """Ask these to end together, and wait; kill who outstays the grace, and all after ``abort``."""
        with self._changed:
            self._stopping.extend(children)
            for child in children:
                child.signal(signal.SIGTERM)
        deadlines = {child: time.monotonic() + child.command.grace_seconds for child in children}
        while left := [child for child in children if not child.ended()]:
            for child in left:
                if self._abort or time.monotonic() > deadlines[child]:
                    child.signal(signal.SIGKILL)
            time.sleep(0.02)

    def abort(self) -> None:
        """Let no stop wait any longer. Safe in a signal handler."""
        self._abort = True

    def close(self) -> None:
        """End the supervisor's thread; every child must have been stopped."""
        with self._changed:
            self._close = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._close:
                for child in self._children:
                    if child not in self._stopping:
                        child.tend()
                self._changed.wait(self.PASS_SECONDS)
