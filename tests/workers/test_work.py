"""Claims, slots, refills, completions: the happy path and lost answers."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from tests.workers.conftest import StartWorker
from tests.workers.control_plane import (
    ControlPlaneStandIn,
    broken,
    cut_after,
    cut_before,
    held_until,
    refused,
)
from workers.process import ExitCode


def all_completed(plane: ControlPlaneStandIn) -> bool:
    return all(dispatch.state == "completed" for dispatch in plane.dispatches.values())


def test_it_registers_what_it_is(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    worker = start(concurrency=3, labels={"zone": "a"}, name="alpha")
    plane.wait(lambda: plane.made("claims"), "a claim")
    assert worker.drained() is ExitCode.CLEAN
    assert plane.registrations == [
        {"display_name": "alpha", "protocol_version": 1, "executor_kinds": ["mock"], "max_concurrency": 3,
         "labels": {"zone": "a"}, "drills": False}
    ]  # fmt: skip


def test_tasks_run_and_their_results_arrive_once(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    for number in range(200):
        plane.add(f"t{number}")
    start()
    plane.wait(lambda: all_completed(plane), "all results")
    assert [d.result for d in plane.dispatches.values()] == [
        {"kind": "success", "output": {"mock": f"t{number}"}} for number in range(200)
    ]
    assert {d.settled for d in plane.dispatches.values()} == {1}
    assert {d.attempt for d in plane.dispatches.values()} == {1}


def test_never_more_leases_than_slots(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    for number in range(100):
        plane.add(f"t{number}", {"sleep_ms": number % 7})
    start(concurrency=5)
    plane.wait(lambda: all_completed(plane), "all results")
    assert plane.most_leased == 5
    capacity = [c for c in plane.calls if c.answer.get("error", {}).get("code") == "worker_capacity_exceeded"]
    assert capacity == []
    refills = [c.answer.get("refill") for c in plane.made("completions")]
    assert not any(refills)


def test_a_claim_asks_for_exactly_the_free_slots(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.add("long", {"sleep_ms": 60_000})
    start(concurrency=4)
    plane.wait(lambda: len(plane.made("claims")) == 2, "a second claim")
    assert [call.body["slots"] for call in plane.made("claims")] == [4, 3]


def test_a_refill_asks_for_what_the_results_free(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    for number in range(6):
        plane.add(f"t{number}")
    start(concurrency=2)
    plane.wait(lambda: all_completed(plane), "all results")
    claims = plane.made("claims")
    assert claims[0].body["slots"] == 2
    assert len(claims[0].answer["leases"]) == 2
    refills = [c for c in plane.made("completions") if "refill" in c.body]
    assert (
        sum(len(c.answer["leases"]) for c in refills) + sum(len(c.answer.get("leases", ())) for c in claims)
        == 6
    )
    assert refills, "completions never refilled"
    assert all(c.body["refill"]["slots"] >= len(c.body["items"]) for c in refills)


def test_no_two_calls_ask_at_once_and_numbers_are_consecutive(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    for number in range(60):
        plane.add(f"t{number}", {"sleep_ms": number % 3})
    start(concurrency=3)
    plane.wait(lambda: all_completed(plane), "all results")
    numbers = [
        call.body["claim_no"] if call.route == "claims" else call.body["refill"]["claim_no"]
        for call in plane.calls
        if call.route == "claims" or "refill" in call.body
    ]
    assert numbers == list(range(1, len(numbers) + 1))


def test_while_a_claim_waits_completions_do_not_refill(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    gate = threading.Event()
    plane.fault("claims", lambda handle: handle(), held_until(gate))
    plane.add("one")
    start(concurrency=2)
    plane.wait(lambda: plane.made("completions"), "a completion")
    assert "refill" not in plane.made("completions")[0].body
    gate.set()


def test_a_lost_claim_answer_is_asked_for_again(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.add("one")
    plane.fault("claims", cut_after)
    start()
    plane.wait(lambda: all_completed(plane), "the result")
    claims = plane.made("claims")
    assert [call.body["claim_no"] for call in claims[:2]] == [1, 1]
    assert plane.dispatches["d1"].attempt == 1


@pytest.mark.parametrize("fault", [broken, cut_before, cut_after])
def test_a_completion_without_answer_is_sent_again_unchanged(
    plane: ControlPlaneStandIn, start: StartWorker, fault: object
) -> None:
    plane.fault("completions", fault)  # type: ignore[arg-type]  # parametrize loses the type
    plane.add("one")
    start(concurrency=1)
    plane.wait(lambda: all_completed(plane) and len(plane.made("completions")) == 2, "the result, twice")
    first, second = plane.made("completions")
    assert first.body == second.body
    assert plane.dispatches["d1"].settled == 1


def test_a_refill_whose_answer_was_lost_is_answered_again(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    for number in range(3):
        plane.add(f"t{number}")
    plane.fault("completions", cut_after)
    start(concurrency=1)
    plane.wait(lambda: all_completed(plane), "all results")
    assert [d.attempt for d in plane.dispatches.values()] == [1, 1, 1]
    assert plane.most_leased == 1


def test_a_result_to_retry_is_sent_again(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    def retry(_handle: object) -> dict[str, object]:
        return {"outcomes": [{"dispatch_id": "d1", "outcome": "retry"}], "leases": []}

    plane.fault("completions", retry)
    plane.add("one")
    start()
    plane.wait(lambda: all_completed(plane), "the result")
    assert len(plane.made("completions")) == 2


def test_a_result_refused_for_good_is_dropped(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    def lost(_handle: object) -> dict[str, object]:
        return {"outcomes": [{"dispatch_id": "d1", "outcome": "lease_lost"}], "leases": []}

    plane.fault("completions", lost)
    plane.add("one")
    worker = start()
    plane.wait(lambda: plane.made("completions"), "the completion")
    assert worker.drained() is ExitCode.CLEAN
    assert len(plane.made("completions")) == 1


def test_a_bad_neighbour_does_not_hold_up_others(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    """A call that contains one particular result always breaks; the others get through, each alone."""

    def broken_for_bad(handle: object) -> dict[str, object]:
        call = plane.made("completions")[-1]
        if any(item["dispatch_id"] == "d1" for item in call.body["items"]):
            return broken(handle)  # type: ignore[arg-type]  # as scripted
        return handle()  # type: ignore[operator,no-any-return]  # as scripted

    plane.fault("completions", *[broken_for_bad] * 50)
    gate = threading.Event()
    plane.fault("claims", held_until(gate))
    for number in range(3):
        plane.add(f"t{number}")
    gate.set()
    start(concurrency=3)
    plane.wait(lambda: sum(d.state == "completed" for d in plane.dispatches.values()) == 2, "the other two")


def test_leases_nobody_asked_for_are_given_back(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    def too_many(_handle: object) -> dict[str, object]:
        with plane.changed:
            plane.slots = 3
            return {"leases": plane._lease(3, 1)}

    plane.fault("claims", too_many)
    for number in range(3):
        plane.add(f"t{number}", {"sleep_ms": 60_000})
    start(concurrency=2)
    plane.wait(lambda: any(d.state == "released" for d in plane.dispatches.values()), "a release")
    assert len(plane.leased()) == 2


def test_retry_after_is_honoured(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("claims", lambda _handle: {"leases": [], "retry_after_ms": 700})
    start()
    plane.wait(lambda: len(plane.made("claims")) == 2, "a second claim")
    first, second = plane.made("claims")
    assert second.at - first.at >= 0.7


def test_a_refill_that_failed_after_the_results_committed(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    def no_refill(handle: object) -> dict[str, object]:
        call = plane.made("completions")[-1]
        call.body.pop("refill", None)
        return {**handle(), "refill": {"code": "unavailable", "retry_after_ms": 10}}  # type: ignore[operator]  # as scripted

    plane.fault("completions", no_refill)
    plane.add("one")
    plane.add("two")
    start(concurrency=1)
    plane.wait(lambda: all_completed(plane), "both results")


def test_a_claim_refused_for_now_is_tried_again(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.fault("claims", refused(409, "worker_capacity_exceeded"), refused(429, "rate_limited"), broken)
    plane.add("one")
    start()
    plane.wait(lambda: all_completed(plane), "the result")


def test_integers_of_a_thousand_digits_arrive_whole(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    number = int("7" * 1000)
    plane.add("one", {"output": {"n": number}})
    start()
    plane.wait(lambda: all_completed(plane), "the result")
    assert plane.dispatches["d1"].result == {"kind": "success", "output": {"n": number}}


def test_a_claim_that_was_held_is_followed_at_once(plane: ControlPlaneStandIn, start: StartWorker) -> None:
    plane.tells_wait = False
    plane.heartbeat_ms, plane.lease_ms = 200, 700
    start()
    plane.wait(lambda: len(plane.made("claims")) == 7, "seven claims")
    assert plane.made("claims")[-1].at - plane.made("claims")[0].at < 3, "pauses grow to seconds otherwise"


def test_early_empty_answers_are_followed_by_growing_pauses(
    plane: ControlPlaneStandIn, start: StartWorker
) -> None:
    plane.fault("claims", *[lambda _handle: {"leases": []}] * 50)
    start()
    plane.wait(lambda: len(plane.made("claims")) == 4, "four claims")
    at = [call.at for call in plane.made("claims")]
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert all(pause >= low for pause, low in zip(pauses, (0.25, 0.5, 1.0), strict=True)), pauses
