"""The interface between the worker and whatever executes a task.

An executor is any object with a `kind` and an `execute` of this shape. It returns an `Outcome` or raises;
exceptions are classified by `workers.outcome`. It looks at `control.cancelled` whenever it can stop: once
set, the result is dropped. It is called from many threads at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from workers.outcome import Outcome
from workflows.kernel.canonical import JsonValue


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """One attempt of one task. `input` is opaque to the worker.

    `generation` grows strictly per task from lease to lease: an outside system can refuse an older one.
    `idempotency_key` stays the same for every attempt of the task. `attempt` counts from 1.
    """

    run_id: str
    workflow_id: str
    workflow_version: int
    task_key: str
    action: str
    input: dict[str, JsonValue] | None
    attempt: int
    generation: int
    idempotency_key: str
    dispatch_id: str
    traceparent: str | None = None


class ExecutionControl(Protocol):
    """The worker's side of a running execution."""

    @property
    def cancelled(self) -> threading.Event:
        """Set when the result is no longer wanted: lease lost or expired, run canceled, worker aborting."""

    @property
    def deadline(self) -> float:
        """When the attempt must be over, in seconds of `time.monotonic`."""

    def log(self, level: str, text: str) -> None:
        """Keep a line with the attempt. Blocks a second at most; drops the line if the buffer stays full."""

    def progress(self, percent: float | None, text: str) -> None:
        """Tell how far the attempt is; only the latest is sent, once a second at most."""


class Executor(Protocol):
    """Executes tasks of one kind."""

    @property
    def kind(self) -> str:
        """The executor kind that tasks name."""

    def execute(self, request: ExecutionRequest, control: ExecutionControl) -> Outcome:
        """Run one attempt to its end, or until `control.cancelled` is set."""
