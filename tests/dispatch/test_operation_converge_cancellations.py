"""Carrying out a cancel: everything open of the run ends, and nothing else."""

from __future__ import annotations

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.operations.complete import Outcome
from dispatch.operations.converge_cancellations import converge_cancellation, converge_cancellations
from dispatch.operations.heartbeat import LeaseStatus
from tests.support.aging import let_retries_be_due
from tests.support.facts import (
    attempt_rows,
    dispatch_states,
    everything_of,
    moves_of,
    ready_rows,
    task_states,
    the_run,
)
from tests.support.platform import (
    OpenFence,
    ShutFence,
    a_run,
    a_task,
    a_worker,
    published,
    queue_all,
    started,
)

pytestmark = pytest.mark.django_db


def test_every_open_task_attempt_and_dispatch_is_canceled_and_what_is_done_stays() -> None:
    worker = a_worker(slots=2)
    again = {"max_attempts": 2, "interval_ms": 60_000}
    tasks = [a_task("done"), a_task("retry", retry=again), a_task("held"), a_task("queued"), a_task("also")]
    run_id = a_run([*tasks, a_task("waits", "held")], concurrency=3)
    queue_all()
    one, two = worker.claim(2).leases
    worker.complete([one])
    worker.complete([two], kind="temporary_failure", error_code="busy")
    queue_all()
    worker.claim(1)
    queue_all()
    assert task_states(run_id) == {
        "done": "succeeded",
        "retry": "waiting_retry",
        "held": "running",
        "queued": "queued",
        "also": "queued",
        "waits": "waiting_dependencies",
    }
    worker.request_cancel(run_id)
    asked_for = the_run(run_id).revision
    assert converge_cancellations(fence=OpenFence()) == 1
    assert task_states(run_id) == {
        "done": "succeeded",
        **dict.fromkeys(("retry", "held", "queued", "also", "waits"), "canceled"),
    }
    run = the_run(run_id)
    assert (run.state, run.revision, run.tasks_canceled) == ("canceled", asked_for + 1, 5)
    assert attempt_rows(run_id)[-1] == ("held", 1, "canceled")
    assert sorted(dispatch_states(run_id)) == ["canceled"] * 3 + ["completed"] * 2
    assert ready_rows(run_id) == []
    assert moves_of(run_id)[-1] == ("run", str(run_id), "running", "canceled")
    assert converge_cancellations(fence=OpenFence()) == 0
    let_retries_be_due(run_id)


def test_a_run_that_never_began_is_canceled_from_pending() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    worker.request_cancel(run_id)
    assert converge_cancellation(run_id)
    assert moves_of(run_id)[-1] == ("run", str(run_id), "pending", "canceled")
    assert the_run(run_id).started_at is None


def test_only_runs_that_were_asked_for_are_touched() -> None:
    worker = a_worker()
    published("flow", [a_task("a")])
    asked, other = started("flow"), started("flow")
    worker.request_cancel(asked)
    before = everything_of(other)
    assert not converge_cancellation(other)
    assert converge_cancellations(fence=OpenFence()) == 1
    assert everything_of(other) == before


def test_a_run_that_finished_first_stays_as_it_finished() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    worker.request_cancel(run_id)
    worker.complete(leases)
    assert converge_cancellations(fence=OpenFence()) == 0
    assert the_run(run_id).state == "succeeded"


def test_its_holder_hears_revoked_and_its_result_is_refused() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    worker.request_cancel(run_id)
    converge_cancellations(fence=OpenFence())
    assert [answer.status for answer in worker.beat(leases).leases] == [LeaseStatus.REVOKED]
    before = everything_of(run_id)
    assert worker.complete(leases) == [Outcome.LEASE_LOST]
    assert everything_of(run_id) == before


def test_the_last_lease_of_a_draining_worker_stops_it() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.claim()
    worker.drain()
    worker.request_cancel(run_id)
    converge_cancellations(fence=OpenFence())
    assert worker.state() == "stopped"


def test_a_leader_that_no_longer_leads_cancels_nothing() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    worker.request_cancel(run_id)
    before = everything_of(run_id)
    with pytest.raises(LeadershipLost):
        converge_cancellations(fence=ShutFence())
    assert everything_of(run_id) == before


def test_many_are_converged_oldest_request_first_one_run_a_batch() -> None:
    worker = a_worker()
    published("flow", [a_task("a")])
    runs = [started("flow") for _ in range(3)]
    for run_id in reversed(runs):
        worker.request_cancel(run_id)
    assert [converge_cancellations(fence=OpenFence()) for _ in range(2)] == [1, 1]
    assert [the_run(run_id).state for run_id in runs] == ["pending", "canceled", "canceled"]
