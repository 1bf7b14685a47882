"""Heartbeats, revocation, the local safety deadline."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.workers.conftest import StartWorker
from tests.workers.control_plane import ControlPlaneStandIn, broken, cut_after, held_until, refused
from workers.account import Account, hold
from workers.executors.base import ExecutionControl, ExecutionRequest
from workers.messages import HeartbeatAnswer, Lease, LeaseStatus
from workers.outcome import Outcome, success
from workers.process import Backoff, ExitCode


class Waiting:
    """An executor that waits until it is canceled or let go."""

    kind = "mock"

    def __init__(self) -> None:
        self.started = threading.Event()
        self.canceled = threading.Event()
        self.go = threading.Event()

    def execute(self, _request: ExecutionRequest, control: ExecutionControl) -> Outcome:
        self.started.set()
        while not self.go.is_set():
            if control.cancelled.wait(0.01):
                self.canceled.set()
                self.go.wait(10)
        return success("late")


def lease(number: int, *, lease_ms: int = 15_000, attempt_ms: int = 60_000) -> Lease:
    request = ExecutionRequest(
        "run", "flow", 1, f"t{number}", "a", None, 1, 1, f"run/t{number}", f"d{number}"
    )
    return Lease(f"d{number}", f"t{number}", "mock", request, lease_ms, attempt_ms)


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def account(slots: int = 4) -> tuple[Account, Time]:
    clock = Time()
    return Account(slots, margin=1.0, clock=clock, changed=lambda: None), clock


# -- over HTTP -------------------------------------------------------------------------------------


def test_an_idle_worker_sends_heartbeats(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    start()
    plane.wait(lambda: len(plane.made("heartbeat")) >= 3, "three heartbeats")
    assert plane.made("heartbeat")[0].body == {"leases": [], "answered_through": 0}


def test_a_long_execution_outlives_its_first_lease(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.lease_ms = 700
    plane.add("long", {"sleep_ms": 1_600})
    start()
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")
    assert plane.dispatches["d1"].attempt == 1


def test_a_revoked_lease_is_canceled_and_nothing_is_submitted(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    waiting = Waiting()
    dispatch = plane.add("one")
    worker = start({"mock": waiting})
    assert waiting.started.wait(5)
    plane.revoke(dispatch)
    assert waiting.canceled.wait(5)
    waiting.go.set()
    assert worker.drained() is ExitCode.CLEAN
    assert plane.made("completions") == []


def test_a_lease_stays_listed_until_its_completion_is_answered(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    gate = threading.Event()
    plane.fault("completions", held_until(gate))
    plane.add("one")
    start(concurrency=1)
    plane.wait(lambda: plane.made("completions"), "a completion")
    sent = len(plane.made("heartbeat"))
    plane.wait(lambda: len(plane.made("heartbeat")) >= sent + 2, "two heartbeats")
    assert [e["dispatch_id"] for e in plane.made("heartbeat")[-1].body["leases"]] == ["d1"]
    gate.set()
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")
    sent = len(plane.made("heartbeat"))
    plane.wait(lambda: len(plane.made("heartbeat")) >= sent + 2, "two heartbeats")
    assert plane.made("heartbeat")[-1].body["leases"] == []


def test_leases_of_an_unanswered_claim_are_not_counted_as_lost(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    """The first answer is lost, the repeat hangs, heartbeats go on: the number is not answered through."""
    gate = threading.Event()
    plane.lease_ms = 60_000
    plane.fault("claims", cut_after, held_until(gate))
    plane.add("one")
    start()
    plane.wait(lambda: len(plane.made("claims")) == 2, "the repeat")
    sent = len(plane.made("heartbeat"))
    plane.wait(lambda: len(plane.made("heartbeat")) >= sent + 2, "two heartbeats")
    assert plane.made("heartbeat")[-1].body["answered_through"] == 0
    gate.set()
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")


def test_without_heartbeats_work_stops_before_the_lease_ends(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    waiting = Waiting()
    plane.lease_ms = 1_000
    plane.fault("heartbeat", *[broken] * 1_000)
    dispatch = plane.add("one")
    start({"mock": waiting}, margin_ms=300)
    assert waiting.canceled.wait(5)
    assert time.monotonic() < dispatch.expires_at
    waiting.go.set()
    plane.wait(lambda: len(plane.made("claims")) >= 2, "the next claim")
    assert plane.made("completions") == []


def test_an_attempt_shorter_than_the_margin_runs(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.add("short", {"sleep_ms": 5}, timeout_ms=300)
    start(margin_ms=1_000)
    plane.lease_ms = 2_000
    plane.wait(lambda: plane.dispatches["d1"].state == "completed", "the result")


def test_an_attempt_that_overruns_is_stopped_and_left_to_time_out(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    waiting = Waiting()
    dispatch = plane.add("one", timeout_ms=500)
    start({"mock": waiting})
    assert waiting.canceled.wait(5)
    assert time.monotonic() < dispatch.deadline
    sent = len(plane.made("heartbeat"))
    plane.wait(lambda: len(plane.made("heartbeat")) > sent, "a heartbeat")
    assert dispatch.state == "leased", "an attempt that ran must not be given back as lost"
    waiting.go.set()


def test_a_claim_that_waited_long_brings_leases_with_their_whole_time(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    """Measured from the sending alone the lease would be over on arrival."""
    plane.lease_ms = 900
    waiting = Waiting()
    start({"mock": waiting}, concurrency=1)
    plane.wait(lambda: plane.made("claims"), "a claim")
    plane.fault("heartbeat", *[broken] * 1_000)
    time_of_claim = plane.made("claims")[-1].at
    threading.Timer(0.3, plane.add, ("one",)).start()
    assert waiting.canceled.wait(5)
    waiting.go.set()
    assert time.monotonic() - time_of_claim > 0.3 + 0.9 - 0.1 - 0.2


def test_the_wait_is_short_until_the_control_plane_tells_how_long_it_held_a_claim(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    plane.tells_wait = False
    plane.heartbeat_ms, plane.lease_ms = 200, 700
    start()
    plane.wait(lambda: len(plane.made("claims")) == 2, "two claims")
    assert {call.body["wait_ms"] for call in plane.made("claims")} == {700 - 2 * 200 - 100}


def test_the_wait_is_long_once_it_does(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.add("one")
    start()
    plane.wait(lambda: len(plane.made("claims")) == 2, "two claims")
    assert [call.body["wait_ms"] for call in plane.made("claims")] == [2_000 - 2 * 200 - 100, 20_000]


# -- the account -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease_ms", "attempt_ms", "safe_after"),
    [
        (15_000, 300_000, 14.0),  # the lease less the margin
        (10_000, 10_000, 9.0),  # the lease lasts as long as the attempt: only the attempt counts
        (2_000, 2_000, 1.8),  # 10 % of what remains, not the margin
        (100, 100, 0.09),
    ],
)
def test_the_safety_deadline(lease_ms: int, attempt_ms: int, safe_after: float) -> None:
    held = hold(lease(1, lease_ms=lease_ms, attempt_ms=attempt_ms), since=50.0, margin=1.0)
    assert held.safe_until == pytest.approx(50.0 + safe_after)


def test_a_renewal_extends_and_never_shortens() -> None:
    book, clock = account()
    asked = book.ask()
    assert asked is not None
    (held,), _ = book.answered([lease(1)], since=clock.now)
    for sent_at, remaining, expected in (
        (105.0, 15_000, 119.0),
        (104.0, 15_000, 119.0),
        (158.0, 2_000, 159.0),
    ):
        book.renewed(HeartbeatAnswer("active", (LeaseStatus("d1", "renewed", remaining),)), sent_at=sent_at)
        assert held.safe_until == pytest.approx(expected)


def test_one_asker_at_a_time_and_a_number_until_answered() -> None:
    book, clock = account()
    first = book.ask()
    assert first is not None
    assert (first.slots, first.claim_no) == (4, 1)
    assert book.ask() is None
    book.unanswered()
    again = book.ask()
    assert again is not None
    assert again.claim_no == 1
    assert book.snapshot() == ([], 0)
    book.answered([lease(1)], since=clock.now)
    assert book.snapshot() == ([("d1", "t1")], 1)
    third = book.ask()
    assert third is not None
    assert (third.slots, third.claim_no) == (3, 2)


def test_a_slot_is_free_only_when_thread_and_lease_are_gone() -> None:
    book, clock = account(slots=1)
    book.ask()
    (held,), _ = book.answered([lease(1)], since=clock.now)
    book.renewed(HeartbeatAnswer("active", (LeaseStatus("d1", "revoked"),)), sent_at=clock.now)
    assert held.cancelled.is_set()
    assert book.snapshot()[0] == []
    assert book.ask() is None, "the thread is still busy"
    assert book.executed(held) is False
    assert book.ask() is not None


def test_more_leases_than_slots_are_for_release() -> None:
    book, clock = account(slots=2)
    book.ask()
    run, give_back = book.answered([lease(n) for n in range(5)], since=clock.now)
    assert (len(run), len(give_back)) == (2, 3)


def test_closing_gives_an_unanswered_number_up() -> None:
    book, _ = account()
    book.ask()
    book.unanswered()
    assert book.snapshot()[1] == 0
    book.close()
    assert book.snapshot()[1] == 1


def test_expiry_by_lease_delists_and_by_attempt_does_not() -> None:
    book, clock = account()
    book.ask()
    book.answered([lease(1), lease(2, lease_ms=3_000, attempt_ms=3_000)], since=clock.now)
    clock.now += 2.7
    assert [(held.lease.dispatch_id, held.timed_out) for held in book.expire()] == [("d2", True)]
    assert ("d2", "t2") in book.snapshot()[0]
    clock.now += 12
    assert [(held.lease.dispatch_id, held.timed_out) for held in book.expire()] == [("d1", False)]
    assert ("d1", "t1") not in book.snapshot()[0]


def test_a_result_on_its_way_may_try_until_the_lease_is_gone() -> None:
    book, clock = account()
    book.ask()
    (held,), _ = book.answered([lease(1)], since=clock.now)
    assert book.executed(held)
    clock.now += 14.5
    assert book.expire() == []
    assert book.wanted(held)
    clock.now += 0.6
    assert not book.wanted(held)
    assert book.expire() == [held]


def test_a_submitted_result_is_not_given_up_for_a_revocation() -> None:
    book, clock = account()
    book.ask()
    (held,), _ = book.answered([lease(1)], since=clock.now)
    book.executed(held)
    held.submitted = True
    assert book.renewed(HeartbeatAnswer("active", (LeaseStatus("d1", "revoked"),)), sent_at=clock.now) == []
    assert book.wanted(held)
    clock.now += 10
    book.renewed(HeartbeatAnswer("active", (LeaseStatus("d1", "renewed", 15_000),)), sent_at=clock.now)
    clock.now += 10
    assert book.wanted(held), "renewals count for it as for any other"


def test_deferred_slots_are_not_asked_for() -> None:
    book, clock = account()
    book.defer(2.0)
    assert book.ask() is None
    clock.now += 2.0
    assert book.ask() is not None


# -- pauses ----------------------------------------------------------------------------------------


def test_pauses_are_random_and_within_their_bounds() -> None:
    series = []
    for _ in range(200):
        backoff = Backoff(0.25, 5.0)
        series.append([backoff.next() for _ in range(8)])
    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 4.0), (2.5, 5.0), (2.5, 5.0), (2.5, 5.0), (2.5, 5.0)]
    for step, (low, high) in enumerate(bounds):
        pauses = [pauses[step] for pauses in series]
        assert low <= min(pauses) <= max(pauses) <= high
        assert max(pauses) - min(pauses) > (high - low) * 0.8, "a pause that hardly varies is no jitter"
        assert len(set(pauses)) > 190


def test_work_resets_the_pause() -> None:
    backoff = Backoff(0.25, 5.0, source=random.Random(1))
    for _ in range(9):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 0.5


def test_heartbeats_after_a_failure_come_sooner(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.heartbeat_ms, plane.lease_ms = 2_000, 60_000
    plane.fault("heartbeat", broken)
    start()
    plane.wait(lambda: len(plane.made("heartbeat")) == 2, "the second heartbeat")
    first, second = plane.made("heartbeat")
    assert second.at - first.at < 1.9


def test_a_refused_heartbeat_does_not_end_the_worker(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("heartbeat", refused(400, "invalid_request"))
    worker = start()
    plane.wait(lambda: len(plane.made("heartbeat")) >= 3, "heartbeats after the refused one")
    assert worker.drained() is ExitCode.CLEAN


def test_the_worker_refuses_a_lease_that_its_margin_eats(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    plane.heartbeat_ms, plane.lease_ms = 500, 2_000
    assert start(margin_ms=1_000).ended() is ExitCode.LEASE_TOO_SHORT
    assert plane.state == "stopped"
