"""Drain, abort, session errors: how a worker ends."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from tests.workers.conftest import Spawn, StartWorker
from tests.workers.control_plane import WAIT_SECONDS, Body, ControlPlaneStandIn, broken, held_until, refused
from tests.workers.test_leases import Waiting
from workers.process import ExitCode


def test_a_drain_finishes_what_runs_and_claims_nothing_more(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    waiting = Waiting()
    plane.add("one")
    worker = start({"mock": waiting}, concurrency=1)
    assert waiting.started.wait(5)
    worker.stop.request()
    plane.wait(lambda: plane.made("drain"), "a drain")
    plane.add("two")
    waiting.go.set()
    assert worker.ended() is ExitCode.CLEAN
    assert [dispatch.state for dispatch in plane.dispatches.values()] == ["completed", "pending"]
    assert plane.state == "stopped"


def test_leases_that_arrive_during_a_drain_are_given_back(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    leased, answer = threading.Event(), threading.Event()

    def slow(handle: object) -> dict[str, object]:
        body: dict[str, object] = handle()  # type: ignore[operator]  # as scripted
        leased.set()
        assert answer.wait(5)
        return body

    plane.fault("claims", slow)
    plane.add("one")
    worker = start()
    assert leased.wait(5)
    worker.stop.request()
    plane.wait(lambda: plane.made("drain"), "a drain")
    answer.set()
    assert worker.ended() is ExitCode.CLEAN
    assert plane.dispatches["d1"].state == "released"


@pytest.mark.parametrize("last_call", ["completions", "release"])
def test_a_session_that_ends_with_the_last_answer_on_its_way_ends_clean(
    plane: ControlPlaneStandIn, start: StartWorker, last_call: str
) -> None:
    """The call that settles the last lease stops the worker; a heartbeat may hear of that before its answer."""
    settled, answer, leased = threading.Event(), threading.Event(), threading.Event()

    def slow(handle: Callable[[], Body]) -> Body:
        body = handle()
        settled.set()
        assert answer.wait(WAIT_SECONDS)
        return body

    def leased_late(handle: Callable[[], Body]) -> Body:
        body = handle()
        leased.set()
        plane.wait(lambda: plane.made("drain"), "a drain")
        return body

    plane.fault(last_call, slow)
    if last_call == "release":
        plane.fault("claims", leased_late)
    waiting = Waiting()
    plane.add("one")
    worker = start({"mock": waiting}, concurrency=1)
    assert (leased if last_call == "release" else waiting.started).wait(WAIT_SECONDS)
    heart = next(thread for thread in threading.enumerate() if thread.name == "heartbeat")
    worker.stop.request()
    waiting.go.set()
    assert settled.wait(WAIT_SECONDS)
    heart.join(WAIT_SECONDS)
    assert plane.made("heartbeat")[-1].status == 401
    answer.set()
    assert worker.ended() is ExitCode.CLEAN


def test_a_result_refused_with_its_session_during_a_drain_is_no_clean_end(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    waiting = Waiting()
    plane.fault("completions", refused(401, "worker_session_invalid"))
    plane.add("one")
    worker = start({"mock": waiting})
    assert waiting.started.wait(WAIT_SECONDS)
    worker.stop.request()
    plane.wait(lambda: plane.made("drain"), "a drain")
    waiting.go.set()
    assert worker.ended() is ExitCode.SESSION_ENDED


def test_the_grace_period_ends(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    waiting = Waiting()
    plane.add("one")
    worker = start({"mock": waiting}, shutdown_grace_ms=300)
    assert waiting.started.wait(5)
    assert worker.drained() is ExitCode.ABANDONED
    assert waiting.canceled.is_set()
    waiting.go.set()
    assert plane.made("completions") == []


def test_a_second_signal_aborts_now(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    waiting = Waiting()
    plane.add("one")
    worker = start({"mock": waiting}, shutdown_grace_ms=60_000)
    assert waiting.started.wait(5)
    worker.stop.request()
    plane.wait(lambda: plane.made("drain"), "a drain")
    before = time.monotonic()
    worker.stop.request()
    assert worker.ended() is ExitCode.ABANDONED
    assert time.monotonic() - before < 5
    waiting.go.set()


@pytest.mark.parametrize("code", ["worker_session_invalid", "worker_protocol_unsupported"])
@pytest.mark.parametrize("route", ["claims", "heartbeat", "completions"])
def test_an_ended_session_stops_local_work(
    plane: ControlPlaneStandIn, start: StartWorker, route: str, code: str
) -> None:
    status = 400 if code == "worker_protocol_unsupported" else 401
    waiting = Waiting()
    plane.add("one")
    plane.add("two", kind="other")
    if route == "claims":
        plane.fault("claims", lambda handle: handle(), refused(status, code))
    else:
        plane.fault(route, refused(status, code))
    worker = start({"mock": waiting})
    assert waiting.started.wait(5)
    assert waiting.canceled.wait(5)
    waiting.go.set()
    assert worker.ended() is ExitCode.SESSION_ENDED


def test_a_drain_from_the_control_plane_ends_the_worker(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    worker = start()
    plane.wait(lambda: plane.made("claims"), "a claim")
    with plane.changed:
        plane.state = "draining"
        plane.changed.notify_all()
    assert worker.ended() is ExitCode.CLEAN


def test_a_refused_registration(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    assert start(enrolment_token="wrong").ended() is ExitCode.CANNOT_REGISTER
    assert plane.registrations == []


def test_registration_waits_for_a_starting_control_plane(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    plane.fault("register", broken)
    worker = start()
    plane.wait(lambda: plane.registrations, "the registration")
    assert worker.drained() is ExitCode.CLEAN


def test_a_signal_while_registering_ends_the_worker(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("register", *[broken] * 1_000)
    worker = start()
    plane.wait(lambda: plane.made("register"), "a try")
    assert worker.drained() is ExitCode.CLEAN


def test_a_drain_that_cannot_be_told_still_ends(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("drain", broken, broken)
    gate = threading.Event()
    plane.fault("claims", held_until(gate))
    worker = start()
    plane.wait(lambda: plane.made("claims"), "a claim")
    worker.stop.request()
    assert worker.ended() is ExitCode.CLEAN
    gate.set()


def test_an_executor_that_breaks_the_worker_ends_it(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    class Broken:
        kind = "mock"

        def execute(self, _request: object, _control: object) -> object:
            raise SystemExit(7)

    plane.add("one")
    assert start({"mock": Broken()}).ended() is ExitCode.INTERNAL


# -- real processes --------------------------------------------------------------------------------


def knows_its_lease(plane: ControlPlaneStandIn) -> bool:
    """Leased on this side says only that the answer is on its way."""
    return any(call.body["leases"] for call in plane.made("heartbeat"))


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_a_process(plane: ControlPlaneStandIn, spawn: Spawn, number: signal.Signals) -> None:
    plane.add("one", {"sleep_ms": 600})
    process = spawn("--kind", "mock")
    plane.wait(lambda: knows_its_lease(plane), "a heartbeat with the lease")
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == ExitCode.CLEAN, errors
    assert plane.dispatches["d1"].state == "completed"
    assert plane.state == "stopped"
    assert "session" not in errors.replace("session ended", "")


@pytest.mark.processes
def test_two_signals_end_a_process_whose_work_is_deaf(plane: ControlPlaneStandIn, spawn: Spawn) -> None:
    plane.add("one", {"hang": True})
    process = spawn("--kind", "mock", "--drills")
    plane.wait(lambda: knows_its_lease(plane), "a heartbeat with the lease")
    process.send_signal(signal.SIGTERM)
    plane.wait(lambda: plane.made("drain"), "a drain")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == ExitCode.ABANDONED, errors
    assert plane.registrations[0]["drills"] is True
    assert plane.registrations[0]["labels"] == {"drills": "true"}


@pytest.mark.processes
def test_a_crash_drill_kills_the_process(plane: ControlPlaneStandIn, spawn: Spawn) -> None:
    plane.add("one", {"crash": True})
    process = spawn("--kind", "mock", "--drills")
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.processes
@pytest.mark.parametrize(
    ("flags", "env", "says"),
    [
        (["--concurrency", "0"], {}, "--concurrency takes 1 to 1024"),
        (["--server-url", "http://example.org"], {}, "plain http"),
        (["--kind", "nobody"], {}, "no executor for 'nobody'"),
        (["--action-module", "no.such.module"], {}, "cannot be imported"),
        ([], {"WORKLOAD_ENROLMENT_TOKEN": ""}, "WORKLOAD_ENROLMENT_TOKEN is not set"),
    ],
)
def test_wrong_options_end_with_their_own_code(
    spawn: Spawn, flags: list[str], env: dict[str, str], says: str
) -> None:
    process = spawn(*flags, **env)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == ExitCode.USAGE
    assert says in errors
