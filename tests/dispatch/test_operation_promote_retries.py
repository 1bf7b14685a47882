"""Due retries become ready, all of them and no others."""

from __future__ import annotations

from uuid import UUID

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.skips import Skips
from tests.support.aging import let_retries_be_due
from tests.support.facts import everything_of, moves_of, ready_rows, task_states, the_task
from tests.support.platform import (
    OpenFence,
    ShutFence,
    TestWorker,
    a_run,
    a_task,
    a_worker,
    promote_all,
    queue_all,
)

pytestmark = pytest.mark.django_db

AGAIN = {"max_attempts": 3, "interval_ms": 60_000}


def _waiting(worker: TestWorker, count: int = 1, *, name: str = "flow") -> UUID:
    run_id = a_run([a_task(f"t{n}", retry=AGAIN) for n in range(count)], name=name)
    queue_all()
    worker.complete(worker.claim(count).leases, kind="temporary_failure", error_code="busy")
    return run_id


def test_a_retry_that_is_not_due_waits() -> None:
    run_id = _waiting(a_worker())
    assert promote_all() == 0
    assert task_states(run_id) == {"t0": "waiting_retry"}


def test_every_due_retry_becomes_ready_at_once() -> None:
    worker = a_worker()
    runs = [_waiting(worker, 3, name="one"), _waiting(worker, 2, name="two")]
    for run_id in runs:
        let_retries_be_due(run_id)
    assert promote_retries(fence=OpenFence(), skips=Skips()) == 5
    for run_id in runs:
        assert set(task_states(run_id).values()) == {"ready"}
        assert the_task(run_id, "t0").ready_at is None
    assert ready_rows(runs[0]) == [(3, True)]
    assert moves_of(runs[1])[-1] == ("task", "t1", "waiting_retry", "ready")
    assert promote_all() == 0
    assert queue_all() == 5


def test_of_one_run_only_what_is_due_becomes_ready() -> None:
    worker = a_worker()
    run_id = a_run([a_task("soon", retry=AGAIN), a_task("later", retry=AGAIN)])
    queue_all()
    soon, later = worker.claim(2).leases
    worker.complete([soon], kind="temporary_failure", error_code="busy")
    let_retries_be_due(run_id)
    worker.complete([later], kind="temporary_failure", error_code="busy")
    assert promote_all() == 1
    assert task_states(run_id) == {"soon": "ready", "later": "waiting_retry"}


def test_a_run_whose_cancel_was_asked_for_keeps_waiting() -> None:
    worker = a_worker()
    canceled, goes_on = _waiting(worker, name="one"), _waiting(worker, name="two")
    worker.request_cancel(canceled)
    let_retries_be_due(canceled)
    let_retries_be_due(goes_on)
    assert promote_all() == 1
    assert task_states(canceled) == {"t0": "waiting_retry"}


def test_a_leader_that_no_longer_leads_promotes_nothing() -> None:
    run_id = _waiting(a_worker())
    let_retries_be_due(run_id)
    before = everything_of(run_id)
    with pytest.raises(LeadershipLost):
        promote_retries(fence=ShutFence(), skips=Skips())
    assert everything_of(run_id) == before
