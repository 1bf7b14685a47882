"""A worker in this process, against the stand-in; every test leaves no thread behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.control_plane import WAIT_SECONDS, ControlPlaneStandIn
from workers.executors.base import Executor
from workers.executors.mock import MockExecutor
from workers.options import WorkerOptions
from workers.process import ExitCode, StopRequests
from workers.runtime import Worker


class RunningWorker:
    """A worker whose main thread is a thread of the test."""

    def __init__(self, options: WorkerOptions, executors: dict[str, Executor]) -> None:
        self.stop = StopRequests()
        self.worker = Worker(options, executors, stop=self.stop)
        self._code: ExitCode | BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._code = self.worker.run()
        except BaseException as error:  # noqa: BLE001  # handed to the test
            self._code = error

    def ended(self) -> ExitCode:
        """Wait for the exit code."""
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the worker does not end"
        if isinstance(self._code, BaseException):
            raise self._code
        assert self._code is not None
        return self._code

    def drained(self) -> ExitCode:
        """One signal, and the exit code."""
        self.stop.request()
        return self.ended()


StartWorker = Callable[..., RunningWorker]
Spawn = Callable[..., "subprocess.Popen[str]"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def plane() -> Iterator[ControlPlaneStandIn]:
    """A stand-in with short intervals."""
    with ControlPlaneStandIn().serve() as served:
        yield served


@pytest.fixture
def start(plane: ControlPlaneStandIn) -> Iterator[StartWorker]:
    """Start workers against `plane`; they are stopped at the end of the test."""
    running: list[RunningWorker] = []

    def make(executors: dict[str, Executor] | None = None, **options: Any) -> RunningWorker:
        chosen: dict[str, Any] = {
            "server_url": plane.url, "enrolment_token": "enrol", "name": "w", "kinds": ("mock",),
            "concurrency": 4, "margin_ms": 100, "shutdown_grace_ms": 5_000, "standby": False, **options,
        }  # fmt: skip
        running.append(RunningWorker(WorkerOptions(**chosen), executors or {"mock": MockExecutor()}))
        return running[-1]

    yield make
    for worker in running:
        worker.stop.request()
        worker.stop.request()
        worker.ended()


@pytest.fixture
def spawn(plane: ControlPlaneStandIn) -> Iterator[Spawn]:
    """Start worker processes against `plane`; they are killed at the end of the test."""
    processes: list[subprocess.Popen[str]] = []

    def make(*flags: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers", "--server-url", plane.url, "--margin-ms", "100", *flags],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "WORKLOAD_ENROLMENT_TOKEN": "enrol", **env},
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield make
    for process in processes:
        process.kill()
        if process.stderr is not None and not process.stderr.closed:
            process.communicate()
