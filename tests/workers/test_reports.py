"""Log lines and progress, over HTTP and under pressure."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
from pydantic import BaseModel

from tests.workers.conftest import StartWorker
from tests.workers.control_plane import ControlPlaneStandIn, broken, refused
from tests.workers.test_leases import lease
from workers import reports
from workers.account import hold
from workers.actions import ActionContext, action
from workers.executors.python import PythonExecutor
from workers.process import monotonic
from workers.reports import Reports


class Nothing(BaseModel):
    pass


@action("talk", input=Nothing)
def talk(_task: Nothing, context: ActionContext) -> str:
    for number in range(500):
        context.logger.info("line %s", number)
    for percent in range(100):
        context.progress(percent, f"step {percent}")
    return "said"


def executors() -> dict[str, Any]:
    return {"python": PythonExecutor({"talk": talk})}


def test_lines_arrive_in_order_before_the_result(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.add("one", kind="python", action="talk")
    start(executors(), kinds=("python",))
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")
    dispatch = plane.dispatches["d1"]
    assert [text for _, text in dispatch.lines] == [f"line {number}" for number in range(500)]
    assert {level for level, _ in dispatch.lines} == {"info"}
    assert len(plane.made("logs")) < 50, "lines travel in batches"
    assert len(plane.made("progress")) <= 2


def test_lines_survive_an_outage(
    plane: ControlPlaneStandIn, start: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "FLUSH_SECONDS", 8.0)
    plane.lease_ms = 60_000
    plane.fault("logs", broken, broken)
    plane.add("one", kind="python", action="talk")
    start(executors(), kinds=("python",))
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")
    assert [text for _, text in plane.dispatches["d1"].lines] == [f"line {number}" for number in range(500)]


def test_refused_lines_do_not_hold_up_the_result(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("logs", *[refused(409, "lease_lost")] * 9)
    plane.add("one", kind="python", action="talk")
    start(executors(), kinds=("python",))
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")


def test_progress_is_the_latest_once_a_second(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    go = threading.Event()

    @action("slow", input=Nothing)
    def slow(_task: Nothing, context: ActionContext) -> None:
        percent = 0
        while not go.is_set():
            percent = min(100, percent + 1)
            context.progress(percent, "on the way")
            context.cancelled.wait(0.01)

    plane.add("one", kind="python", action="slow")
    start({"python": PythonExecutor({"slow": slow})}, kinds=("python",))
    plane.wait(lambda: len(plane.dispatches["d1"].progress) == 3, "three messages")
    go.set()
    sent = [call.at for call in plane.made("progress")]
    assert min(later - earlier for earlier, later in pairwise(sent)) >= 0.95
    percents = [told["percent"] for told in plane.dispatches["d1"].progress]
    assert percents[0] < percents[1] - 20 < percents[2]


class SilentPlane:
    """A control plane that takes no lines."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not expected")


def test_a_full_buffer_holds_an_action_up_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "BLOCK_SECONDS", 0.01)
    monkeypatch.setattr(reports, "FLUSH_SECONDS", 0.01)
    kept = Reports(SilentPlane(), clock=monotonic, stopping=threading.Event())
    held = hold(lease(1), since=monotonic(), margin=1.0)
    for _ in range(100):
        kept.log(held, "info", "x" * 8 * 1024)
    buffer = kept._buffers["d1"]
    assert buffer.size <= reports.BUFFER_BYTES
    assert buffer.dropped == 100 - len(buffer.lines) > 0
    before = monotonic()
    kept.finish(held)
    assert monotonic() - before < 1
    assert kept._buffers == {}


def test_the_end_of_an_attempt_looks_for_its_lines_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sending thread takes a buffer out for a moment; whoever looks just then must not see none."""
    monkeypatch.setattr(reports, "FLUSH_SECONDS", 0.01)
    kept = Reports(SilentPlane(), clock=monotonic, stopping=threading.Event())
    held = hold(lease(1), since=monotonic(), margin=1.0)
    kept.log(held, "info", "a line")
    finishing = threading.Thread(target=kept.finish, args=(held,))
    with kept._condition:
        buffer = kept._buffers.pop("d1")
        finishing.start()
        finishing.join(0.2)
        waited = finishing.is_alive()
        kept._buffers["d1"] = buffer
    finishing.join()
    assert waited
    assert kept._buffers == {}


def test_texts_are_cut_and_storable() -> None:
    assert reports.cut("a\x00\ud800b", 100) == "a\N{REPLACEMENT CHARACTER}?b"
    assert len(reports.cut("\N{EURO SIGN}" * 200, 256).encode()) <= 256
