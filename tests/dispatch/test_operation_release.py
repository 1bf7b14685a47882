"""Giving a lease back unstarted: the task is ready again and nothing of its budget is used."""

from __future__ import annotations

import pytest
from uuid_utils.compat import uuid7

from dispatch.errors import LeaseLost
from dispatch.operations.complete import Outcome
from dispatch.operations.release import release
from tests.support.aging import let_leases_expire
from tests.support.facts import (
    attempt_rows,
    everything_of,
    moves_of,
    ready_rows,
    the_dispatch,
    the_run,
    the_task,
)
from tests.support.platform import a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db


def test_the_task_is_ready_again_and_its_budget_whole() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    assert worker.release(lease) is Outcome.APPLIED
    task = the_task(run_id, "a")
    assert (task.state, task.attempts, task.attempts_used) == ("ready", 1, 0)
    assert attempt_rows(run_id) == [("a", 1, "released")]
    assert the_dispatch(lease.dispatch_id).state == "released"
    assert ready_rows(run_id) == [(1, True)]
    assert moves_of(run_id)[-2:] == [
        ("attempt", "a/1", "running", "released"),
        ("task", "a", "running", "ready"),
    ]
    queue_all()
    [again] = worker.claim().leases
    assert (again.attempt, again.generation > lease.generation) == (2, True)


def test_a_repeat_is_answered_like_the_first() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    worker.release(lease)
    before = everything_of(run_id)
    assert worker.release(lease) is Outcome.REPLAYED
    assert everything_of(run_id) == before


def test_what_is_not_held_cannot_be_given_back() -> None:
    worker, other = a_worker(), a_worker()
    run_id = a_run([a_task(key) for key in "abc"])
    queue_all()
    expired, done = worker.claim(2).leases
    [foreign] = other.claim(1).leases
    worker.complete([done])
    let_leases_expire([expired])
    before = everything_of(run_id)
    for lease in (expired, done, foreign):
        with pytest.raises(LeaseLost):
            worker.release(lease)
    with pytest.raises(LeaseLost):
        release(worker_id=worker.identity.id, dispatch_id=uuid7(), lease_token="x")
    with pytest.raises(LeaseLost):
        release(worker_id=worker.identity.id, dispatch_id=expired.dispatch_id, lease_token="x")
    assert everything_of(run_id) == before


def test_the_last_lease_given_back_stops_a_draining_worker() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    worker.drain()
    worker.release(lease)
    assert worker.state() == "stopped"
    assert the_run(run_id).state == "running"
