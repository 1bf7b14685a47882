"""Claiming: who gets what, how much, and what the same call answers when it is sent again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dispatch.errors import WorkerCapacityExceeded, WorkerDraining, WorkerSessionInvalid
from dispatch.lease import token_digest
from dispatch.models import Dispatch
from dispatch.operations.mark_offline import mark_offline
from dispatch.operations.release import release
from platform_site.access.models import Tenant
from tests.support.aging import control_plane_there, let_leases_expire, let_worker_be_silent
from tests.support.facts import (
    attempt_rows,
    dispatch_states,
    moves_of,
    task_states,
    the_dispatch,
    the_run,
    the_task,
)
from tests.support.platform import LEASE, OpenFence, a_run, a_task, a_worker, published, queue_all, started
from workflows.kernel.canonical import loads
from workflows.models import Attempt
from workflows.operations.request_cancel import request_cancel

pytestmark = pytest.mark.django_db


def test_a_claim_leases_and_the_attempt_is_born() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a", action="hello", input={"x": [1, 2.5]}, timeout_ms=60_000)])
    queue_all()
    [lease] = worker.claim().leases
    dispatch = the_dispatch(lease.dispatch_id)
    assert (dispatch.state, dispatch.worker_id, dispatch.claim_no) == ("leased", worker.identity.id, 1)
    assert bytes(dispatch.lease_digest or b"") == token_digest(lease.token)
    assert lease.token.encode() not in bytes(dispatch.lease_digest or b"")
    assert (dispatch.generation, dispatch.attempt_number) == (lease.generation, 1)
    assert dispatch.leased_at is not None
    assert dispatch.lease_expires_at == dispatch.leased_at + LEASE
    assert dispatch.attempt_deadline == dispatch.leased_at + timedelta(minutes=1)
    assert (lease.run_id, lease.task_key, lease.attempt) == (run_id, "a", 1)
    assert (lease.workflow, lease.version, lease.action) == ("flow", 1, "hello")
    assert lease.input == {"x": [1, 2.5]}
    assert (lease.expires_in, lease.deadline_in) == (LEASE, timedelta(minutes=1))
    assert lease.idempotency_key == f"{run_id}/a"
    assert attempt_rows(run_id) == [("a", 1, "running")]
    attempt = Attempt.objects.get()
    assert (attempt.worker_id, attempt.worker_name) == (worker.identity.id, "w")
    assert (attempt.dispatch_id, attempt.generation) == (lease.dispatch_id, lease.generation)
    assert attempt.deadline == dispatch.attempt_deadline
    task = the_task(run_id, "a")
    assert (task.state, task.attempts, task.attempts_used) == ("running", 1, 0)
    assert moves_of(run_id)[-1] == ("task", "a", "queued", "running")
    run = the_run(run_id)
    assert (run.revision, run.tasks_running, run.tasks_queued) == (2, 1, 0)


def test_nothing_to_do_is_an_empty_answer() -> None:
    worker = a_worker()
    claimed = worker.claim(4)
    assert (claimed.leases, claimed.retry_after_ms) == ([], None)


def test_a_lease_never_outlives_its_attempt() -> None:
    worker = a_worker()
    a_run([a_task("a", timeout_ms=500)])
    queue_all()
    [lease] = worker.claim().leases
    assert lease.expires_in == lease.deadline_in == timedelta(milliseconds=500)


def test_leases_come_in_the_order_of_service_and_no_more_than_slots() -> None:
    worker = a_worker()
    published("flow", [a_task("a"), a_task("b"), a_task("c")])
    runs = [started("flow") for _ in range(3)]
    queue_all()
    leases = [lease for slots in (1, 2, 4, 16) for lease in worker.claim(slots).leases]
    assert [lease.task_key for lease in leases] == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    assert [lease.run_id for lease in leases] == runs * 3
    assert len({lease.token for lease in leases}) == 9
    generations = [lease.generation for lease in leases]
    assert generations == sorted(set(generations))


def test_a_worker_holds_no_more_leases_than_its_slots() -> None:
    worker, other = a_worker(slots=3), a_worker(slots=16)
    a_run([a_task(f"t{n}") for n in range(9)])
    queue_all()
    assert len(worker.claim(2).leases) == 2
    assert len(worker.claim(3).leases) == 1
    assert worker.claim(3).leases == []
    assert len(other.claim(16).leases) == 6


def test_more_slots_than_it_registered_are_refused() -> None:
    with pytest.raises(WorkerCapacityExceeded):
        a_worker(slots=2).claim(3)


def test_it_takes_only_what_it_accepts() -> None:
    plain, python, labelled = (
        a_worker(kinds=["mock"]),
        a_worker(kinds=["python"]),
        a_worker(labels={"z": "1"}),
    )
    a_run([a_task("p", executor="python", action="x"), a_task("l", requires={"z": "1"}), a_task("m")])
    queue_all()
    assert [lease.task_key for lease in plain.claim(9).leases] == ["m"]
    assert [lease.task_key for lease in python.claim(9).leases] == ["p"]
    assert [lease.task_key for lease in labelled.claim(9).leases] == ["l"]


def test_a_worker_of_a_tenant_takes_nothing_of_others() -> None:
    a_worker()
    other = Tenant.objects.create(slug="other", name="Other")
    stranger = a_worker(tenant_id=other.id)
    a_run([a_task("a")])
    queue_all()
    assert stranger.claim(9).leases == []


def test_a_repeat_of_a_call_answers_the_same_leases_with_the_same_tokens() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a", input={"x": 1}), a_task("b"), a_task("c")])
    queue_all()
    first = worker.claim(2, claim_no=7).leases
    before = the_run(run_id).revision
    again = worker.claim(2, claim_no=7).leases
    assert [(one.dispatch_id, one.token, one.generation, one.attempt, one.input) for one in again] == [
        (one.dispatch_id, one.token, one.generation, one.attempt, one.input) for one in first
    ]
    assert all(timedelta() < one.expires_in <= LEASE for one in again)
    assert the_run(run_id).revision == before
    assert dispatch_states(run_id) == ["leased", "leased", "pending"]


def test_a_repeat_leaves_out_what_is_no_longer_held() -> None:
    worker = a_worker()
    run_id = a_run([a_task(key) for key in "abcd"])
    queue_all()
    done, given_back, expired, kept = worker.claim(4, claim_no=1).leases
    worker.complete([done])
    release(worker_id=worker.identity.id, dispatch_id=given_back.dispatch_id, lease_token=given_back.token)
    let_leases_expire([expired])
    assert [lease.dispatch_id for lease in worker.claim(4, claim_no=1).leases] == [kept.dispatch_id]
    assert attempt_rows(run_id)[1][2] == "released"


def test_a_repeat_leaves_out_what_a_heartbeat_called_lost() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    worker.claim(1, claim_no=1)
    worker.beat([], answered_through=1)
    assert worker.claim(1, claim_no=1).leases == []


def test_a_draining_worker_is_refused_but_hears_its_last_answer_again() -> None:
    worker = a_worker()
    a_run([a_task("a"), a_task("b")])
    queue_all()
    first = worker.claim(1, claim_no=1).leases
    worker.drain()
    assert [one.token for one in worker.claim(1, claim_no=1).leases] == [one.token for one in first]
    with pytest.raises(WorkerDraining):
        worker.claim(1, claim_no=2)


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_session_that_is_over_gets_nothing_whether_or_not_there_is_work(waiting: int) -> None:
    worker, other = a_worker(), a_worker()
    a_run([a_task("a")])
    queue_all()
    if not waiting:
        other.claim()
    control_plane_there()
    let_worker_be_silent(worker.identity.id, seconds=60)
    assert mark_offline(fence=OpenFence(), offline_after=timedelta(seconds=15)) == 1
    with pytest.raises(WorkerSessionInvalid):
        worker.claim()
    other.stop()
    with pytest.raises(WorkerSessionInvalid):
        other.claim()


def test_a_run_whose_cancel_was_asked_for_starts_nothing() -> None:
    worker = a_worker()
    canceled = a_run([a_task("a")])
    goes_on = a_run([a_task("a")], name="other")
    queue_all()
    request_cancel(run_ids=[canceled], tenant_id=None, actor="ann")
    assert [lease.run_id for lease in worker.claim(4).leases] == [goes_on]
    assert worker.claim(4).leases == []
    assert task_states(canceled) == {"a": "queued"}


def test_inputs_are_resolved_from_params_and_outputs() -> None:
    worker = a_worker()
    wanted = {"n": {"$from": "params.n"}, "rows": {"$from": "tasks.a.output.rows"}, "plain": True}
    tasks = [a_task("a"), a_task("b", "a", input=wanted)]
    started(published("flow", tasks, params={"type": "object"}), params={"n": 12345678901234567890})
    queue_all()
    worker.complete(worker.claim().leases, output={"rows": [1, {"k": "v"}]})
    queue_all()
    [lease] = worker.claim().leases
    assert lease.input == {"n": 12345678901234567890, "rows": [1, {"k": "v"}], "plain": True}
    [again] = worker.claim(claim_no=worker.calls).leases
    assert again.input == lease.input


def test_an_input_that_cannot_be_resolved_fails_its_task_and_the_worker_gets_the_next() -> None:
    worker = a_worker()
    bad = [a_task("bad", "a", input={"x": {"$from": "tasks.a.output.nowhere"}}), a_task("after", "bad")]
    run_id = a_run([a_task("a"), *bad, a_task("good", "a")])
    queue_all()
    worker.complete(worker.claim().leases, output={"rows": []})
    assert queue_all() == 2
    [lease] = worker.claim(1).leases
    assert lease.task_key == "good"
    assert task_states(run_id) == {"a": "succeeded", "bad": "failed", "after": "skipped", "good": "running"}
    task = the_task(run_id, "bad")
    assert (task.error_code, task.attempts, task.attempts_used) == ("input_unresolvable", 1, 1)
    attempt = Attempt.objects.get(task=task)
    assert (attempt.state, attempt.worker_id, attempt.worker_name) == ("failed", None, "")
    assert sorted(dispatch_states(run_id)) == ["canceled", "completed", "leased"]
    moves = [(key, source, target) for entity, key, source, target in moves_of(run_id) if entity == "task"]
    assert ("bad", "queued", "running") in moves
    assert ("bad", "running", "failed") in moves
    worker.complete([lease])
    assert the_run(run_id).state == "failed"


def test_a_worker_gets_past_more_unresolvable_inputs_than_it_has_rounds() -> None:
    worker = a_worker()
    bad = [a_task(f"bad{n}", "a", input={"x": {"$from": "tasks.a.output.nowhere"}}) for n in range(8)]
    a_run([a_task("a"), *bad, a_task("good", "a")])
    queue_all()
    worker.complete(worker.claim().leases, output={})
    queue_all()
    claimed = worker.claim(1)
    for _ in range(8):
        if claimed.leases:
            break
        assert claimed.retry_after_ms is not None  # there is more: it must not wait for a wake-up
        claimed = worker.claim(1)
    assert [lease.task_key for lease in claimed.leases] == ["good"]


def test_an_input_that_grew_too_large_fails_its_task() -> None:
    worker = a_worker()
    keys = [f"s{n}" for n in range(5)]
    wanted = {key: {"$from": f"tasks.{key}.output"} for key in keys}
    run_id = a_run([*(a_task(key) for key in keys), a_task("all", *keys, input=wanted)])
    queue_all()
    worker.complete(worker.claim(5).leases, output="x" * 60_000)
    queue_all()
    assert worker.claim(1).leases == []
    assert the_task(run_id, "all").error_code == "input_too_large"
    assert the_run(run_id).state == "failed"


def test_an_answer_is_bounded_by_what_the_inputs_really_weigh() -> None:
    worker = a_worker(slots=256)
    a_run([a_task(f"t{n}", input={"x": n}) for n in range(200)])
    large = a_run([a_task(f"t{n}", input={"x": "y" * 60_000}) for n in range(100)], name="large")
    queue_all()
    leases = worker.claim(256).leases
    weight = sum(60_000 for lease in leases if lease.run_id == large)
    assert len([lease for lease in leases if lease.run_id != large]) >= 60
    assert 3 * 1024 * 1024 < weight <= 4 * 1024 * 1024
    assert Dispatch.objects.filter(state="pending").count() == 256 - len(leases)


def test_no_more_is_read_of_outputs_than_an_answer_could_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little the inputs take of them."""
    read: list[int] = []

    def counted(text: str) -> Any:
        read.append(len(text))
        return loads(text)

    worker = a_worker(slots=256)
    sources = [a_task(f"s{n}") for n in range(100)]
    takers = [a_task(f"t{n}", f"s{n}", input={"x": {"$from": f"tasks.s{n}.output.n"}}) for n in range(100)]
    a_run([*sources, *takers])
    queue_all()
    worker.complete(worker.claim(100).leases, output={"n": 1, "weight": "y" * 60_000})
    queue_all()
    monkeypatch.setattr("dispatch.operations.inputs.loads", counted)
    first = worker.claim(100).leases
    assert 60 <= len(first) < 100
    assert sum(read) <= 4 * 1024 * 1024
    again = worker.claim(100, claim_no=worker.calls).leases
    assert [(lease.dispatch_id, lease.input) for lease in again] == [
        (one.dispatch_id, {"x": 1}) for one in first
    ]
    assert len(worker.claim(100).leases) == 100 - len(first)


def test_no_more_is_read_of_params_than_an_answer_could_hold() -> None:
    worker = a_worker(slots=256)
    published("flow", [a_task("a", input={"x": {"$from": "params.n"}})], params={"type": "object"})
    for _ in range(80):
        started("flow", params={"n": 1, "weight": "y" * 60_000})
    queue_all()
    assert [len(worker.claim(80).leases) for _ in range(2)] == [69, 11]


def test_one_lease_always_fits_whatever_its_references_weigh() -> None:
    worker = a_worker(slots=256)
    keys = [f"s{n}" for n in range(80)]
    wanted = {key: {"$from": f"tasks.{key}.output.n"} for key in keys}
    a_run(
        [
            *(a_task(key) for key in keys),
            a_task("all", *keys, input=wanted),
            a_task("next", "s0", input={"x": {"$from": "tasks.s0.output.n"}}),
        ]
    )
    queue_all()
    worker.complete(worker.claim(80).leases, output={"n": 1, "weight": "y" * 60_000})
    queue_all()
    [lease] = [one for one in worker.claim(2).leases if one.task_key == "all"]
    assert lease.input == dict.fromkeys(keys, 1)


def test_small_inputs_do_not_shorten_an_answer() -> None:
    worker = a_worker(slots=256)
    a_run([a_task(f"t{n}", input={"x": n}) for n in range(200)])
    queue_all()
    assert len(worker.claim(256).leases) == 200


def test_generation_grows_from_lease_to_lease_of_a_task() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    generations = []
    for attempt in (1, 2, 3):
        queue_all()
        [lease] = worker.claim().leases
        assert lease.attempt == attempt
        generations.append(lease.generation)
        release(worker_id=worker.identity.id, dispatch_id=lease.dispatch_id, lease_token=lease.token)
    assert generations == sorted(set(generations))
