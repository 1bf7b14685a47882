"""Reaping: how each lease that ended without a result is settled, and what is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.operations.claim import Lease
from dispatch.operations.heartbeat import LeaseStatus
from dispatch.operations.mark_offline import mark_offline
from dispatch.operations.reap import reap
from dispatch.statements import sql
from tests.support.aging import (
    control_plane_there,
    let_deadline_pass,
    let_leases_expire,
    let_worker_be_silent,
)
from tests.support.facts import (
    attempt_rows,
    dispatch_states,
    everything_of,
    moves_of,
    task_states,
    the_dispatch,
    the_run,
    the_task,
)
from tests.support.platform import OpenFence, ShutFence, TestWorker, a_run, a_task, a_worker, queue_all
from workflows.models import Attempt

pytestmark = pytest.mark.django_db

AGAIN = {"max_attempts": 2, "interval_ms": 1000}


@pytest.fixture(autouse=True)
def _a_control_plane_that_is_there() -> None:
    control_plane_there()


def _leased(worker: TestWorker, *tasks: dict[str, Any]) -> tuple[Any, list[Lease]]:
    run_id = a_run(tasks or [a_task("a", retry=AGAIN)])
    queue_all()
    return run_id, worker.claim(16).leases


def test_an_expired_lease_is_an_interrupted_attempt_that_uses_budget() -> None:
    run_id, leases = _leased(a_worker())
    let_leases_expire(leases)
    assert reap(fence=OpenFence()) == 1
    task = the_task(run_id, "a")
    assert (task.state, task.attempts_used, task.error_code) == ("waiting_retry", 1, "interrupted")
    attempt = Attempt.objects.get()
    assert attempt.finished_at is not None
    assert task.ready_at is not None
    assert (task.ready_at - attempt.finished_at).total_seconds() == 1.0
    assert attempt_rows(run_id) == [("a", 1, "interrupted")]
    assert dispatch_states(run_id) == ["expired"]
    assert moves_of(run_id)[-2:] == [
        ("attempt", "a/1", "running", "interrupted"),
        ("task", "a", "running", "waiting_retry"),
    ]
    assert reap(fence=OpenFence()) == 0


def test_without_budget_the_task_fails_and_its_descendants_are_skipped() -> None:
    run_id, leases = _leased(a_worker(), a_task("a"), a_task("b", "a"))
    let_leases_expire(leases)
    reap(fence=OpenFence())
    assert task_states(run_id) == {"a": "failed", "b": "skipped"}
    assert the_run(run_id).state == "failed"


def test_a_passed_deadline_is_a_timeout() -> None:
    run_id, leases = _leased(a_worker())
    let_deadline_pass(leases)
    assert reap(fence=OpenFence()) == 1
    assert attempt_rows(run_id) == [("a", 1, "timed_out")]
    task = the_task(run_id, "a")
    assert (task.state, task.attempts_used, task.error_code) == ("waiting_retry", 1, "timeout")


def test_a_lease_that_stands_is_left_alone() -> None:
    run_id, _ = _leased(a_worker())
    before = everything_of(run_id)
    assert reap(fence=OpenFence()) == 0
    assert everything_of(run_id) == before


def test_a_leader_that_no_longer_leads_reaps_nothing() -> None:
    run_id, leases = _leased(a_worker())
    let_leases_expire(leases)
    before = everything_of(run_id)
    with pytest.raises(LeadershipLost):
        reap(fence=ShutFence())
    assert everything_of(run_id) == before


def test_what_was_renewed_between_the_look_and_the_lock_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = a_worker()
    run_id, leases = _leased(worker)
    real_rows = sql.rows

    def rows(name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        if name == "reap_candidates":
            return [(leases[0].dispatch_id, run_id)]  # it looked expired, and then its heartbeat came
        return real_rows(name, **params)

    monkeypatch.setattr(sql, "rows", rows)
    before = everything_of(run_id)
    assert reap(fence=OpenFence()) == 0
    assert everything_of(run_id) == before


def test_an_outage_of_the_control_plane_uses_no_budget() -> None:
    run_id, leases = _leased(a_worker(), a_task("a"))
    let_leases_expire(leases, seconds=60)
    control_plane_there(since_seconds=5)
    assert reap(fence=OpenFence()) == 1
    task = the_task(run_id, "a")
    assert (task.state, task.attempts, task.attempts_used) == ("waiting_retry", 1, 0)
    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.reason) == ("interrupted", "control_plane_outage")


def test_an_outage_that_outlasted_the_deadline_fails_no_task_either() -> None:
    run_id, leases = _leased(a_worker(), a_task("a"))
    let_leases_expire(leases, seconds=60)
    let_deadline_pass(leases)
    control_plane_there(since_seconds=5)
    assert reap(fence=OpenFence()) == 1
    assert (the_task(run_id, "a").state, the_task(run_id, "a").attempts_used) == ("waiting_retry", 0)


def test_an_outage_that_still_lasts_uses_no_budget() -> None:
    run_id, leases = _leased(a_worker(), a_task("a"))
    let_leases_expire(leases, seconds=20)
    control_plane_there(seen_seconds=18)
    assert reap(fence=OpenFence()) == 1
    assert the_task(run_id, "a").attempts_used == 0


def test_a_lost_claim_is_released_even_past_its_deadline() -> None:
    worker = a_worker()
    run_id, leases = _leased(worker)
    worker.beat([])
    let_deadline_pass(leases)
    assert reap(fence=OpenFence()) == 1
    assert attempt_rows(run_id) == [("a", 1, "released")]
    assert (the_task(run_id, "a").state, the_task(run_id, "a").attempts_used) == ("ready", 0)


def test_a_lease_that_was_renewed_and_then_dropped_uses_budget() -> None:
    worker = a_worker()
    run_id, leases = _leased(worker)
    assert [answer.status for answer in worker.beat(leases).leases] == [LeaseStatus.RENEWED]
    worker.beat([])
    assert reap(fence=OpenFence()) == 1
    assert attempt_rows(run_id) == [("a", 1, "interrupted")]
    assert dispatch_states(run_id) == ["expired"]
    assert (the_task(run_id, "a").state, the_task(run_id, "a").attempts_used) == ("waiting_retry", 1)


def test_a_lease_dropped_in_an_outage_uses_no_budget() -> None:
    worker = a_worker()
    run_id, leases = _leased(worker, a_task("a"))
    worker.beat(leases)
    worker.beat([])
    control_plane_there(since_seconds=-5)
    assert reap(fence=OpenFence()) == 1
    assert attempt_rows(run_id) == [("a", 1, "interrupted")]
    assert (the_task(run_id, "a").state, the_task(run_id, "a").attempts_used) == ("waiting_retry", 0)


def test_the_leases_of_an_offline_worker_are_taken_at_once() -> None:
    worker, other = a_worker(), a_worker()
    run_id, leases = _leased(worker)
    other_run = a_run([a_task("a")], name="other")
    queue_all()
    other.claim()
    let_worker_be_silent(worker.identity.id, seconds=60)
    assert mark_offline(fence=OpenFence(), offline_after=timedelta(seconds=15)) == 1
    expires = the_dispatch(leases[0].dispatch_id).lease_expires_at
    assert reap(fence=OpenFence()) == 1
    finished = the_dispatch(leases[0].dispatch_id).finished_at
    assert finished is not None
    assert expires is not None
    assert finished < expires
    assert attempt_rows(run_id) == [("a", 1, "interrupted")]
    assert task_states(other_run) == {"a": "running"}


def test_the_limit_bounds_one_call_and_the_next_goes_on() -> None:
    run_id, leases = _leased(a_worker(), *(a_task(f"t{n}", retry=AGAIN) for n in range(5)))
    let_leases_expire(leases)
    assert [reap(fence=OpenFence(), limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert set(task_states(run_id).values()) == {"waiting_retry"}


def test_the_last_lease_of_a_draining_worker_stops_it() -> None:
    worker = a_worker()
    _, leases = _leased(worker)
    worker.drain()
    let_leases_expire(leases)
    reap(fence=OpenFence())
    assert worker.state() == "stopped"


def test_a_run_whose_cancel_was_asked_for_is_reaped_too() -> None:
    worker = a_worker()
    run_id, leases = _leased(worker)
    worker.request_cancel(run_id)
    let_leases_expire(leases)
    assert reap(fence=OpenFence()) == 1
    assert task_states(run_id) == {"a": "waiting_retry"}
