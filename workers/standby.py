"""A second heart in a process of its own, for when an action holds the interpreter.

Some C code keeps Python's lock for seconds: a regular expression that backtracks, a huge sort. No thread of
the worker runs meanwhile, so no heartbeat does, and every lease of the worker would be lost. The standby
process hears of each lease before it is executed and of each heartbeat before it is sent; when the heartbeats
fall silent it sends them itself, with the last it heard. It tells the worker what was renewed, so that the
worker's watch, once it runs again, does not stop work whose lease is fine.

It must not keep the leases of a dead worker alive. It ends when the worker does (its input closes), says
nothing while the worker is stopped (SIGSTOP), and covers a silence of `COVER_SECONDS` at most.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from workers.account import Held, Renewals, Snapshot
from workers.client import ControlPlane, ControlPlaneError, HttpControlPlane
from workers.messages import HeartbeatAnswer, LeaseStatus, WorkerSession

logger = logging.getLogger("workers.standby")

COVER_SECONDS = 120.0
PATIENCE_INTERVALS = 1.5
"""Silence of so many heartbeat intervals before the standby speaks; the lease lasts more than two."""
WRITE_SECONDS = 0.2
PIPE_BYTES = 1024 * 1024


class Lines:
    """Complete lines from a descriptor, as they come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self.ended = False
        os.set_blocking(descriptor, False)

    def read(self, timeout: float) -> list[dict[str, Any]]:
        """The lines that are there, waiting up to `timeout` seconds for the first."""
        lines: list[dict[str, Any]] = []
        while not self.ended and select.select([self._descriptor], [], [], 0 if lines else timeout)[0]:
            read = os.read(self._descriptor, 65_536)
            self.ended = not read
            *whole, self._rest = (self._rest + read).split(b"\n")
            lines += map(json.loads, whole)
            timeout = 0
        return lines


def write_line(file: IO[bytes], value: dict[str, Any], *, seconds: float) -> bool:
    """Write one line; False if the other side did not take it within `seconds`."""
    rest = memoryview(json.dumps(value).encode() + b"\n")
    descriptor = file.fileno()
    until = time.monotonic() + seconds
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            if not select.select([], [descriptor], [], max(0.0, until - time.monotonic()))[1]:
                return False
        except OSError:
            return False
    return True


class Standby:
    """The worker's side: starts the process, tells it, hears of renewals. Works on without it if it fails."""

    def __init__(self, server_url: str, session: WorkerSession) -> None:
        self._process = subprocess.Popen(  # our own module, by our own interpreter
            [sys.executable, "-m", "workers.standby"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=Path(__file__).parents[1],
        )
        assert self._process.stdin is not None  # noqa: S101  # it was asked for
        assert self._process.stdout is not None  # noqa: S101  # as above
        self._input, output = self._process.stdin, self._process.stdout
        for pipe in (self._input, output):
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._input.fileno(), False)
        self._output = output
        self._lines = Lines(output.fileno())
        self._lock = threading.Lock()
        self._alive = True
        self._tell({"server_url": server_url, "session": _fields(session)})

    def snapshot(self, take: Callable[[], Snapshot]) -> Snapshot:
        """Take what a heartbeat is about to say, and tell it.

        Both under the lock: else a lease granted in between is told first and forgotten with the snapshot.
        """
        with self._lock:
            leases, answered_through = take()
            self._tell({"leases": leases, "answered_through": answered_through})
            return leases, answered_through

    def granted(self, leases: Sequence[Held]) -> None:
        """These are in the account and about to be executed."""
        with self._lock:
            self._tell({"more": [(held.lease.dispatch_id, held.lease.lease_token) for held in leases]})

    def renewals(self) -> Renewals:
        """What the standby renewed since the last call, each with the time its request was sent."""
        with self._lock:
            lines = self._lines.read(0) if self._alive else []
        return [
            (
                HeartbeatAnswer("", tuple(LeaseStatus(i, "renewed", left) for i, left in line["renewed"])),
                line["at"],
            )
            for line in lines
        ]

    def close(self) -> None:
        """End the process and wait for it."""
        with self._lock:
            self._alive = False
            self._input.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _tell(self, value: dict[str, Any]) -> None:
        if self._alive and not write_line(self._input, value, seconds=WRITE_SECONDS):
            self._alive = False
            self._process.kill()
            logger.warning("the standby heart failed; leases are renewed by this process alone")


class Understudy:
    """The process's side: listens, and beats when the worker falls silent."""

    def __init__(self, plane: ControlPlane, interval: float, lines: Lines, answers: IO[bytes]) -> None:
        self._plane = plane
        self._interval = interval
        self._lines = lines
        self._answers = answers
        self._worker = os.getppid()
        self._leases: dict[str, str] = {}
        self._answered_through = 0

    def run(self) -> None:
        """Until the worker ends."""
        heard_at = time.monotonic()
        due = heard_at + PATIENCE_INTERVALS * self._interval
        while not self._lines.ended and os.getppid() == self._worker:
            if self.hear(self._lines.read(max(0.0, due - time.monotonic()))):
                heard_at = time.monotonic()
                due = heard_at + PATIENCE_INTERVALS * self._interval
            elif time.monotonic() >= due:
                if (
                    self._leases
                    and time.monotonic() - heard_at < COVER_SECONDS
                    and not _stopped(self._worker)
                ):
                    self._beat()
                due = time.monotonic() + self._interval

    def hear(self, lines: Iterable[dict[str, Any]]) -> bool:
        """Take in what the worker told; whether a heartbeat was among it."""
        beaten = False
        for line in lines:
            if "more" in line:
                self._leases.update(line["more"])
            else:
                self._leases = dict(line["leases"])
                self._answered_through = line["answered_through"]
                beaten = True
        return beaten

    def _beat(self) -> None:
        sent_at = time.monotonic()
        try:
            answer = self._plane.heartbeat(
                leases=list(self._leases.items()), answered_through=self._answered_through
            )
        except ControlPlaneError:
            return  # the worker's own heart meets the same and says so
        renewed = [
            (entry.dispatch_id, entry.lease_remaining_ms)
            for entry in answer.leases
            if entry.status == "renewed"
        ]
        write_line(self._answers, {"at": sent_at, "renewed": renewed}, seconds=WRITE_SECONDS)


def _stopped(process: int) -> bool:
    """Whether a process is stopped (SIGSTOP, a debugger); taken for no where there is no /proc."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state in "Tt"


def _fields(session: WorkerSession) -> dict[str, Any]:
    return {name: getattr(session, name) for name in WorkerSession.__slots__}


def main() -> None:
    """Entry of the standby process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.SIG_IGN
        )  # sent to the whole group: the worker drains, and ends this one last
    lines = Lines(sys.stdin.fileno())
    first: list[dict[str, Any]] = []
    while not first and not lines.ended:
        first = lines.read(60.0)
    if not first:
        return
    session = WorkerSession(**first[0]["session"])
    plane = HttpControlPlane(first[0]["server_url"], session)
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as answers:  # a descriptor
        os.set_blocking(answers.fileno(), False)
        understudy = Understudy(plane, session.heartbeat_interval_ms / 1000, lines, answers)
        understudy.hear(first[1:])
        understudy.run()


if __name__ == "__main__":
    main()
