"""The mock and python executors, by themselves."""

from __future__ import annotations

import sys
import threading
import time
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from workers.actions import ActionContext, action
from workers.executors.base import ExecutionRequest
from workers.executors.mock import MockExecutor
from workers.executors.python import ActionsInvalid, PythonExecutor, collect_actions
from workers.executors.registry import build_executors
from workers.options import OptionsInvalid, WorkerOptions
from workers.outcome import ExecutionCancelled, Outcome, PermanentFailure


class Control:
    """Records what an execution says."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.deadline = time.monotonic() + 60
        self.lines: list[tuple[str, str]] = []
        self.told: list[tuple[float | None, str]] = []

    def log(self, level: str, text: str) -> None:
        self.lines.append((level, text))

    def progress(self, percent: float | None, text: str) -> None:
        self.told.append((percent, text))


def request(told: Any = None, *, action_name: str = "a", attempt: int = 1) -> ExecutionRequest:
    return ExecutionRequest("run", "flow", 1, "key", action_name, told, attempt, 7, "run/key", "d1")


def mock(told: Any, *, attempt: int = 1, drills: bool = False) -> Outcome:
    return MockExecutor(drills=drills).execute(request(told, attempt=attempt), Control())


# -- mock ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [None, {}, {"what": "ever", "sleep_ms": "x", "fail_times": True}])
def test_mock_succeeds_with_the_key(told: Any) -> None:
    assert mock(told).output == {"mock": "key"}


@pytest.mark.parametrize("output", [None, 3, {"a": [1]}])
def test_mock_returns_the_output_it_is_given(output: Any) -> None:
    assert mock({"output": output}) == Outcome(mock({}).kind, output=output)


def test_mock_fails_on_the_first_attempts() -> None:
    kinds = [mock({"fail_times": 2}, attempt=attempt).kind for attempt in (1, 2, 3)]
    assert kinds == ["temporary_failure", "temporary_failure", "success"]


def test_mock_fails_as_told() -> None:
    failed = mock({"fail": "permanent", "error_code": "no_such_file", "error_message": "gone"})
    assert (failed.kind, failed.error_code, failed.error_message) == (
        "permanent_failure",
        "no_such_file",
        "gone",
    )
    failed = mock({"fail": "temporary"}, attempt=99)
    assert (failed.kind, failed.error_code) == ("temporary_failure", "mock_temporary")


def test_mock_sleeps_until_canceled() -> None:
    control = Control()
    control.cancelled.set()
    with pytest.raises(ExecutionCancelled):
        MockExecutor().execute(request({"sleep_ms": 60_000}), control)


@pytest.mark.parametrize("drill", ["hang", "crash"])
def test_drills_are_off_by_default(drill: str) -> None:
    failed = mock({drill: True})
    assert (failed.kind, failed.error_code) == ("permanent_failure", "drills_disabled")


# -- python ----------------------------------------------------------------------------------------


class Size(BaseModel):
    width: int
    height: int = 1


class Area(BaseModel):
    area: int


@action("sizes.area", input=Size)
def area(task: Size, context: ActionContext) -> Area:
    context.logger.info("computing %s", "it")
    context.logger.error("nothing wrong")
    context.progress(50, "half")
    assert (context.attempt, context.generation, context.idempotency_key) == (1, 7, "run/key")
    assert (context.run_id, context.task_key) == ("run", "key")
    assert 0 < context.remaining() <= 60
    context.check_cancelled()
    return Area(area=task.width * task.height)


@action("sizes.refuse", input=Size)
def refuse(_task: Size, _context: ActionContext) -> None:
    raise PermanentFailure("refused", "as ever")


def python(told: Any, name: str, control: Control | None = None) -> Outcome:
    executor = PythonExecutor({made.name: made for made in (area, refuse)})
    return executor.execute(request(told, action_name=name), control or Control())


def test_an_action_runs_with_its_context() -> None:
    control = Control()
    assert python({"width": 6, "height": 7}, "sizes.area", control).output == {"area": 42}
    assert control.lines == [("info", "computing it"), ("error", "nothing wrong")]
    assert control.told == [(50, "half")]


def test_an_unknown_action_fails_for_good() -> None:
    for name in ("sizes.nothing", "os.system", "tests.workers.test_executors"):
        failed = python({}, name)
        assert (failed.kind, failed.error_code) == ("permanent_failure", "unknown_action")


def test_an_input_that_does_not_fit_fails_for_good() -> None:
    assert python({"height": 2}, "sizes.area").error_code == "invalid_input"
    assert python(None, "sizes.area").error_code == "invalid_input"


def test_an_action_notices_cancellation() -> None:
    control = Control()
    control.cancelled.set()
    with pytest.raises(ExecutionCancelled):
        python({"width": 1}, "sizes.area", control)


def test_actions_come_from_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_up_actions")
    module.area = area  # type: ignore[attr-defined]  # a module made for this test
    monkeypatch.setitem(sys.modules, "made_up_actions", module)
    found = collect_actions(["made_up_actions"])
    assert found["sizes.area"] is area
    assert "documents.list" in found


def test_two_actions_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_up_actions")
    module.mine = action("documents.list", input=Size)(lambda _task, _context: None)  # type: ignore[attr-defined]  # as above
    monkeypatch.setitem(sys.modules, "made_up_actions", module)
    with pytest.raises(ActionsInvalid, match=r"another action named 'documents\.list'"):
        collect_actions(["made_up_actions"])


@pytest.mark.parametrize("name", ["no.such.module", "json"])
def test_a_module_without_actions_is_refused(name: str) -> None:
    with pytest.raises(ActionsInvalid, match=name):
        collect_actions([name])


def test_an_action_needs_a_name() -> None:
    with pytest.raises(ValueError, match="not a name"):
        action("no spaces", input=Size)


# -- the registry ----------------------------------------------------------------------------------


def options(**given: Any) -> WorkerOptions:
    chosen: dict[str, Any] = {
        "server_url": "http://127.0.0.1:1",
        "enrolment_token": "t",
        "name": "w",
        **given,
    }
    return WorkerOptions(**chosen)


def test_a_worker_has_the_kinds_it_names() -> None:
    assert sorted(build_executors(options(kinds=("python", "mock")))) == ["mock", "python"]
    assert sorted(build_executors(options())) == ["python"], "mock is never taken by default"


def test_a_kind_that_nobody_provides_is_refused() -> None:
    with pytest.raises(OptionsInvalid, match=r"known kinds: .*mock, python"):
        build_executors(options(kinds=("docker",)))


def test_further_executors_are_handed_in() -> None:
    made = MockExecutor()
    assert build_executors(options(kinds=("agent",)), {"agent": lambda _options: made}) == {"agent": made}
