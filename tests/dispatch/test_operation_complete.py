"""Results under their leases: what each does to its task, what a repeat answers, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from uuid_utils.compat import uuid7

from dispatch.operations.claim import Lease
from dispatch.operations.complete import Item, Outcome, complete
from dispatch.operations.results import check_result
from tests.support.aging import let_deadline_pass, let_leases_expire, let_retries_be_due
from tests.support.facts import (
    attempt_rows,
    dispatch_states,
    everything_of,
    moves_of,
    ready_rows,
    task_states,
    the_dispatch,
    the_run,
    the_task,
)
from tests.support.platform import (
    TestWorker,
    a_run,
    a_task,
    a_worker,
    promote_all,
    published,
    queue_all,
    started,
)
from workflows.models import Attempt

pytestmark = pytest.mark.django_db

RETRY_TWICE = {"max_attempts": 3, "interval_ms": 1000}


def _item(lease: Lease, **result: Any) -> Item:
    sent = {"kind": "success", "output": None, **result}
    return Item(lease.dispatch_id, lease.token, check_result(sent))


def _claimed(worker: TestWorker, slots: int = 1) -> list[Lease]:
    queue_all()
    return worker.claim(slots).leases


def test_a_success_settles_attempt_task_and_dispatch() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    [lease] = _claimed(worker)
    assert worker.complete([lease], output={"b": 1, "a": 1.0}) == [Outcome.APPLIED]
    task = the_task(run_id, "a")
    assert (task.state, task.output, task.attempts_used) == ("succeeded", '{"a":1.0,"b":1}', 0)
    assert task.finished_at is not None
    assert attempt_rows(run_id) == [("a", 1, "succeeded")]
    assert the_dispatch(lease.dispatch_id).state == "completed"
    assert task_states(run_id) == {"a": "succeeded", "b": "ready"}
    assert ready_rows(run_id) == [(1, True)]
    assert moves_of(run_id)[-3:] == [
        ("attempt", "a/1", "running", "succeeded"),
        ("task", "a", "running", "succeeded"),
        ("task", "b", "waiting_dependencies", "ready"),
    ]
    assert the_run(run_id).revision == 3


def test_a_diamond_unlocks_its_last_task_once() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "a"), a_task("d", "b", "c")])
    worker.complete(_claimed(worker))
    first, second = _claimed(worker, 2)
    worker.complete([first])
    assert the_task(run_id, "d").unmet_dependencies == 1
    worker.complete([first])
    assert the_task(run_id, "d").unmet_dependencies == 1
    worker.complete([second])
    assert the_task(run_id, "d").state == "ready"
    assert moves_of(run_id).count(("task", "d", "waiting_dependencies", "ready")) == 1


def test_both_arms_of_a_diamond_in_one_batch_unlock_it_once() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "a"), a_task("d", "b", "c")])
    worker.complete(_claimed(worker))
    assert worker.complete(_claimed(worker, 2)) == [Outcome.APPLIED] * 2
    assert (the_task(run_id, "d").state, the_task(run_id, "d").unmet_dependencies) == ("ready", 0)
    assert moves_of(run_id).count(("task", "d", "waiting_dependencies", "ready")) == 1


def test_the_last_success_settles_the_run() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    worker.complete(_claimed(worker))
    run = the_run(run_id)
    assert (run.state, run.tasks_succeeded) == ("succeeded", 1)
    assert run.finished_at is not None
    assert ready_rows(run_id) == []
    assert moves_of(run_id)[-1] == ("run", str(run_id), "running", "succeeded")


def test_a_temporary_failure_waits_for_its_retry_until_the_budget_is_spent() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a", retry=RETRY_TWICE)])
    for used in (1, 2):
        [lease] = _claimed(worker)
        worker.complete([lease], kind="temporary_failure", error_code="busy", error_message="later")
        task = the_task(run_id, "a")
        assert (task.state, task.attempts, task.attempts_used) == ("waiting_retry", used, used)
        assert (task.error_code, task.error_message) == ("busy", "later")
        finished = Attempt.objects.get(task=task, number=used).finished_at
        assert finished is not None
        assert task.ready_at is not None
        assert (task.ready_at - finished).total_seconds() == 1.0
        assert queue_all() == 0
        let_retries_be_due(run_id)
        assert promote_all() == 1
    worker.complete(_claimed(worker), kind="temporary_failure", error_code="busy", error_message="later")
    task = the_task(run_id, "a")
    assert (task.state, task.attempts_used, task.reason) == ("failed", 3, "attempts_exhausted")
    assert attempt_rows(run_id) == [("a", n, "failed") for n in (1, 2, 3)]
    assert the_run(run_id).state == "failed"


def test_a_success_after_a_retry_leaves_no_error_behind() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a", retry=RETRY_TWICE)])
    worker.complete(_claimed(worker), kind="temporary_failure", error_code="busy")
    let_retries_be_due(run_id)
    promote_all()
    worker.complete(_claimed(worker))
    task = the_task(run_id, "a")
    assert (task.state, task.error_code, task.attempts, task.attempts_used) == ("succeeded", "", 2, 1)
    assert the_run(run_id).state == "succeeded"


def test_a_permanent_failure_never_retries_and_skips_every_descendant_once() -> None:
    worker = a_worker()
    tasks = [a_task("a", retry=RETRY_TWICE), a_task("b", "a"), a_task("c", "a"), a_task("d", "b", "c")]
    run_id = a_run([*tasks, a_task("free")])
    lease = next(one for one in _claimed(worker, 2) if one.task_key == "a")
    worker.complete([lease], kind="permanent_failure", error_code="bad", error_message="no")
    states = {"a": "failed", "b": "skipped", "c": "skipped", "d": "skipped", "free": "running"}
    assert task_states(run_id) == states
    assert moves_of(run_id).count(("task", "d", "waiting_dependencies", "skipped")) == 1
    assert the_run(run_id).state == "running"  # the unrelated branch goes on
    worker.complete([one for one in worker.leases.values() if one.task_key == "free"])
    run = the_run(run_id)
    assert (run.state, run.tasks_failed, run.tasks_skipped, run.tasks_succeeded) == ("failed", 1, 3, 1)


def test_a_success_and_a_failure_in_one_batch_skip_their_common_successor() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b"), a_task("c", "a", "b"), a_task("d", "a")])
    leases = {lease.task_key: lease for lease in _claimed(worker, 2)}
    items = [_item(leases["a"]), _item(leases["b"], kind="permanent_failure", error_code="bad")]
    assert complete(worker_id=worker.identity.id, items=items) == [Outcome.APPLIED] * 2
    assert task_states(run_id) == {"a": "succeeded", "b": "failed", "c": "skipped", "d": "ready"}


def test_two_failures_skip_a_shared_descendant_once() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b"), a_task("c", "a", "b")])
    leases = _claimed(worker, 2)
    worker.complete(leases[:1], kind="permanent_failure", error_code="bad")
    worker.complete(leases[1:], kind="permanent_failure", error_code="bad")
    run = the_run(run_id)
    assert (run.state, run.tasks_failed, run.tasks_skipped) == ("failed", 2, 1)


def test_a_success_after_its_successor_was_skipped_changes_only_itself() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b"), a_task("c", "a", "b")])
    leases = {lease.task_key: lease for lease in _claimed(worker, 2)}
    worker.complete([leases["b"]], kind="permanent_failure", error_code="bad")
    worker.complete([leases["a"]])
    assert task_states(run_id) == {"a": "succeeded", "b": "failed", "c": "skipped"}
    assert the_run(run_id).state == "failed"


def test_the_same_result_again_is_the_first_success_again() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    [lease] = _claimed(worker)
    worker.complete([lease], output={"x": 1, "y": 2})
    before = everything_of(run_id)
    assert worker.complete([lease], output={"y": 2, "x": 1}) == [Outcome.REPLAYED]
    let_deadline_pass([lease])
    assert worker.complete([lease], output={"y": 2, "x": 1}) == [Outcome.REPLAYED]
    assert everything_of(run_id)["Task"] == before["Task"]
    assert everything_of(run_id)["run"] == before["run"]


def test_another_result_under_the_same_lease_is_a_conflict() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    [lease] = _claimed(worker)
    worker.complete([lease], output=1)
    before = everything_of(run_id)
    for other in ({"output": 2}, {"kind": "permanent_failure", "error_code": "x"}):
        assert worker.complete([lease], **other) == [Outcome.RESULT_CONFLICT]
    assert everything_of(run_id) == before


def test_duplicates_in_one_batch_settle_once() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b")])
    one, two = _claimed(worker, 2)
    items = [_item(one, output=1), _item(two), _item(one, output=1), _item(one, output=2)]
    assert complete(worker_id=worker.identity.id, items=items) == [
        Outcome.APPLIED,
        Outcome.APPLIED,
        Outcome.REPLAYED,
        Outcome.RESULT_CONFLICT,
    ]
    assert the_task(run_id, one.task_key).output == "1"
    assert the_run(run_id).state == "succeeded"


def test_bad_items_spoil_nothing() -> None:
    worker, other = a_worker(), a_worker()
    mine = a_run([a_task("a")], name="mine")
    theirs = a_run([a_task("a")], name="theirs")
    queue_all()
    [lease] = worker.claim(1).leases
    [foreign] = other.claim(1).leases
    before = everything_of(theirs if lease.run_id == mine else mine)
    unknown = Item(uuid7(), "x", check_result({"kind": "success"}))
    forged = Item(lease.dispatch_id, foreign.token, check_result({"kind": "success"}))
    items = [unknown, forged, _item(foreign), _item(lease)]
    assert complete(worker_id=worker.identity.id, items=items) == [
        *([Outcome.LEASE_LOST] * 3),
        Outcome.APPLIED,
    ]
    assert everything_of(theirs if lease.run_id == mine else mine) == before
    assert the_run(lease.run_id).state == "succeeded"


@pytest.mark.parametrize("end", [let_leases_expire, let_deadline_pass])
def test_a_late_result_changes_nothing(end: Any) -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    leases = _claimed(worker)
    end(leases)
    before = everything_of(run_id)
    assert worker.complete(leases) == [Outcome.LEASE_LOST]
    assert everything_of(run_id) == before


def test_a_result_after_the_lease_was_given_back_is_refused() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    leases = _claimed(worker)
    worker.release(leases[0])
    before = everything_of(run_id)
    assert worker.complete(leases) == [Outcome.LEASE_LOST]
    assert everything_of(run_id) == before


def test_no_items_is_no_outcome() -> None:
    assert complete(worker_id=a_worker().identity.id, items=[]) == []


def test_many_runs_settle_in_one_call() -> None:
    worker = a_worker()
    published("flow", [a_task("a"), a_task("b", "a")])
    runs = [started("flow") for _ in range(5)]
    assert worker.complete(_claimed(worker, 5)) == [Outcome.APPLIED] * 5
    assert all(task_states(run_id) == {"a": "succeeded", "b": "ready"} for run_id in runs)


def test_the_last_result_of_a_draining_worker_stops_it() -> None:
    worker = a_worker()
    a_run([a_task("a"), a_task("b")])
    one, two = _claimed(worker, 2)
    assert worker.drain() == "draining"
    worker.complete([one])
    assert worker.state() == "draining"
    worker.complete([two])
    assert worker.state() == "stopped"


def test_an_output_that_cannot_be_stored_is_settled_as_a_permanent_failure() -> None:
    worker = a_worker()
    tasks = [a_task(key, retry=RETRY_TWICE) for key in ("large", "nul", "nan", "fine")]
    run_id = a_run(tasks)
    leases = {lease.task_key: lease for lease in _claimed(worker, 4)}
    items = [
        _item(leases["large"], output="x" * 70_000),
        _item(leases["nul"], output={"a": ["b\x00"]}),
        _item(leases["nan"], output=float("nan")),
        _item(leases["fine"], output="x" * 60_000),
    ]
    assert complete(worker_id=worker.identity.id, items=items) == [Outcome.APPLIED] * 4
    codes = {key: the_task(run_id, key).error_code for key in leases}
    assert codes == {
        "large": "result_too_large",
        "nul": "result_invalid",
        "nan": "result_invalid",
        "fine": "",
    }
    assert "$.a[0]" in the_task(run_id, "nul").error_message
    assert the_run(run_id).state == "failed"
    assert set(dispatch_states(run_id)) == {"completed"}


def test_error_texts_are_cleaned_and_cut() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    code, message = "c" * 300, "bad\x00\ud800 " + "é" * 9000
    worker.complete(_claimed(worker), kind="permanent_failure", error_code=code, error_message=message)
    task = the_task(run_id, "a")
    assert len(task.error_code.encode()) <= 128
    assert len(task.error_message.encode()) <= 8 * 1024
    assert "\x00" not in task.error_message


def test_a_result_between_a_cancel_request_and_its_convergence_is_accepted() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    leases = _claimed(worker)
    worker.request_cancel(run_id)
    assert worker.complete(leases) == [Outcome.APPLIED]
    assert task_states(run_id) == {"a": "succeeded", "b": "ready"}
    assert ready_rows(run_id) == [(1, False)]
    assert queue_all() == 0
