"""What is queued for nobody goes back, without using anything up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.operations.mark_offline import mark_offline
from dispatch.operations.requeue_orphans import requeue_orphans
from dispatch.operations.skips import Skips
from tests.support.aging import control_plane_there, let_worker_be_silent
from tests.support.facts import (
    attempt_rows,
    dispatch_states,
    everything_of,
    moves_of,
    ready_rows,
    task_states,
    the_run,
    the_task,
)
from tests.support.platform import OpenFence, ShutFence, a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db


def _requeue() -> int:
    return requeue_orphans(fence=OpenFence(), skips=Skips())


def test_what_no_worker_accepts_any_more_is_ready_again() -> None:
    worker, other = a_worker(kinds=["mock"]), a_worker(kinds=["python"])
    run_id = a_run([a_task("m"), a_task("p", executor="python", action="x")])
    assert queue_all() == 2
    assert _requeue() == 0
    worker.drain()
    assert _requeue() == 1
    assert task_states(run_id) == {"m": "ready", "p": "queued"}
    task = the_task(run_id, "m")
    assert (task.attempts, task.attempts_used, task.reason) == (0, 0, "no worker takes it")
    assert attempt_rows(run_id) == []
    assert sorted(dispatch_states(run_id)) == ["canceled", "pending"]
    assert moves_of(run_id)[-1] == ("task", "m", "queued", "ready")
    assert sorted(ready_rows(run_id)) == [(0, True), (1, True)]
    assert (the_run(run_id).tasks_queued, queue_all()) == (1, 0)
    assert other.state() == "active"
    a_worker(kinds=["mock"])
    assert queue_all() == 1


def test_an_offline_worker_accepts_nothing() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    control_plane_there()
    let_worker_be_silent(worker.identity.id, seconds=60)
    mark_offline(fence=OpenFence(), offline_after=timedelta(seconds=15))
    assert _requeue() == 1
    assert task_states(run_id) == {"a": "ready"}


def test_one_worker_left_of_many_is_enough() -> None:
    gone, _left = a_worker(), a_worker()
    a_run([a_task("a")])
    queue_all()
    gone.drain()
    assert _requeue() == 0


def test_what_is_leased_is_left_to_its_lease() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.claim()
    worker.drain()
    assert _requeue() == 0
    assert task_states(run_id) == {"a": "running"}


def test_a_leader_that_no_longer_leads_requeues_nothing() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.drain()
    before = everything_of(run_id)
    with pytest.raises(LeadershipLost):
        requeue_orphans(fence=ShutFence(), skips=Skips())
    assert everything_of(run_id) == before
