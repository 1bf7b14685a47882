"""Actions and what they are given."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from workers.executors.base import ExecutionControl, ExecutionRequest
from workers.outcome import ExecutionCancelled
from workflows.kernel.canonical import JsonValue

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Input = TypeVar("Input", bound=BaseModel)


class ActionContext:
    """One attempt, as its action sees it.

    `idempotency_key` is the same for every attempt of the task: give it to outside systems, so that a repeat
    does nothing twice. `generation` grows from lease to lease: an outside system that remembers the highest
    one it saw can refuse a worker that lost its lease without noticing.
    """

    def __init__(self, request: ExecutionRequest, control: ExecutionControl) -> None:
        self._control = control
        self.run_id = request.run_id
        self.task_key = request.task_key
        self.attempt = request.attempt
        self.generation = request.generation
        self.idempotency_key = request.idempotency_key
        self.logger = _attempt_logger(request, control)

    @property
    def cancelled(self) -> threading.Event:
        """Set when the result is not wanted any more; wait on it instead of sleeping."""
        return self._control.cancelled

    @property
    def deadline(self) -> float:
        """When the attempt must be over, in seconds of `time.monotonic`."""
        return self._control.deadline

    def remaining(self) -> float:
        """Seconds until the deadline, never below zero."""
        return max(0.0, self._control.deadline - time.monotonic())

    def check_cancelled(self) -> None:
        """Raise `ExecutionCancelled` if the result is not wanted any more; call it between steps."""
        if self._control.cancelled.is_set():
            raise ExecutionCancelled

    def progress(self, percent: float | None = None, text: str = "") -> None:
        """Tell how far the attempt is: percent from 0 to 100, a text of at most 256 bytes.

        Call it as often as you like: the latest is sent, once a second at most.
        """
        self._control.progress(percent, text)


class _AttemptHandler(logging.Handler):
    """Keeps log records with the attempt, through the control plane, instead of in the worker's own log."""

    def __init__(self, control: ExecutionControl) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        names = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}
        level = names.get(record.levelno, "error" if record.levelno >= logging.ERROR else "info")
        self._control.log(level, self.format(record))


def _attempt_logger(request: ExecutionRequest, control: ExecutionControl) -> logging.Logger:
    """A logger of this attempt alone. Not from `getLogger`, which would keep one per attempt for ever."""
    made = logging.Logger(f"action.{request.action}", logging.INFO)  # noqa: LOG001  # see above
    made.addHandler(_AttemptHandler(control))
    return made


@dataclass(frozen=True, slots=True)
class Action(Generic[Input]):
    """A function under a name, with the model of its input."""

    name: str
    input: type[Input]
    function: Callable[[Input, ActionContext], Any]

    def __call__(self, task: Input, context: ActionContext) -> JsonValue:
        """Run the function; a model it returns becomes plain JSON."""
        returned = self.function(task, context)
        return returned.model_dump(mode="json") if isinstance(returned, BaseModel) else returned


def action(
    name: str,
    *,
    input: type[Input],  # noqa: A002  # reads as the definition's own word
) -> Callable[[Callable[[Input, ActionContext], Any]], Action[Input]]:
    """Make an `Action` of a function. `name`: 1 to 128 letters, digits, dots, dashes, underscores."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for an action: letters, digits, dots, dashes, underscores")

    def make(function: Callable[[Input, ActionContext], Any]) -> Action[Input]:
        return Action(name, input, function)

    return make
