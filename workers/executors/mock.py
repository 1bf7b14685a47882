"""The `mock` executor: does what its input says, for tests, loads and drills. The action is never
interpreted.

Input keys, all optional; others are ignored, because an input is opaque:

- `output`        the output of the success; default `{"mock": <task key>}`
- `sleep_ms`      wait so long first (whole milliseconds); ends early when the execution is canceled
- `fail_times`    fail temporarily (`mock_temporary`) on attempts 1 to n
- `fail`          `"permanent"`: fail permanently (`mock_permanent`); `"temporary"`: fail temporarily every
  time
- `error_code`    the code of such a failure
- `error_message` its message
- `hang`          true: never end, deaf to cancellation
- `crash`         true: kill the worker process with SIGKILL

`hang` and `crash` come after `sleep_ms`, and only on a worker started with `--drills`; otherwise they are a
permanent failure `drills_disabled`.
"""

from __future__ import annotations

import os
import signal
import threading

from workers.executors.base import ExecutionControl, ExecutionRequest
from workers.outcome import ExecutionCancelled, Outcome, permanent, success, temporary
from workflows.kernel.canonical import JsonValue

_DRILLS = ("hang", "crash")


class MockExecutor:
    """Succeeds, fails, sleeps, hangs or crashes as told."""

    kind = "mock"

    def __init__(self, *, drills: bool = False) -> None:
        self._drills = drills

    def execute(self, request: ExecutionRequest, control: ExecutionControl) -> Outcome:
        """See the module for the keys of the input."""
        told = request.input
        if not told:
            return success({"mock": request.task_key})
        sleep_ms = _whole(told.get("sleep_ms"))
        if sleep_ms > 0 and control.cancelled.wait(sleep_ms / 1000):
            raise ExecutionCancelled
        for drill in _DRILLS:
            if told.get(drill) is True:
                return self._perform(drill)
        if failure := _failure(told, request.attempt):
            return failure
        return success(told.get("output", {"mock": request.task_key}))

    def _perform(self, drill: str) -> Outcome:
        if not self._drills:
            return permanent("drills_disabled", f"the drill {drill!r} needs a worker started with --drills")
        if drill == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
        raise AssertionError("a hang does not end")


def _failure(told: dict[str, JsonValue], attempt: int) -> Outcome | None:
    fail = told.get("fail")
    if fail == "permanent":
        return permanent(
            _text(told, "error_code", "mock_permanent"), _text(told, "error_message", "told to fail")
        )
    if fail == "temporary" or attempt <= _whole(told.get("fail_times")):
        return temporary(
            _text(told, "error_code", "mock_temporary"), _text(told, "error_message", "told to fail")
        )
    return None


def _whole(value: JsonValue) -> int:
    """`value` if it is a whole number, else 0: an odd value is ignored like an unknown key."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(told: dict[str, JsonValue], key: str, default: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) and value else default
