"""A result against a cancel, and against itself."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from dispatch.operations.claim import Lease
from dispatch.operations.complete import Outcome
from dispatch.operations.converge_cancellations import converge_cancellation
from tests.races.holding import hold_run, hold_worker
from tests.support.facts import attempt_rows, moves_of, task_states, the_run, the_task
from tests.support.platform import OpenFence, TestWorker, a_run, a_task, a_worker, queue_all
from tests.support.races import rival
from workflows.ledger import RunLedger


def _leased(worker: TestWorker) -> tuple[Lease, Lease]:
    a_run([a_task("a"), a_task("b")])
    queue_all()
    one, two = worker.claim(2).leases
    worker.drain()  # whoever settles a lease of it waits for its row, last of all
    return one, two


def test_a_result_behind_a_cancel_is_refused() -> None:
    worker = a_worker()
    one, _two = _leased(worker)
    worker.request_cancel(one.run_id)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: converge_cancellation(one.run_id, fence=OpenFence()), name="cancel") as cancel,
    ):
        cancel.wait_until_blocked()
        with rival(lambda: worker.complete([one]), name="complete") as complete:
            complete.wait_until_blocked()
            lock.release()
            assert cancel.result()
            assert complete.result() == [Outcome.LEASE_LOST]
    assert task_states(one.run_id) == {"a": "canceled", "b": "canceled"}
    assert attempt_rows(one.run_id) == [("a", 1, "canceled"), ("b", 1, "canceled")]
    assert worker.state() == "stopped"


def test_a_cancel_behind_a_result_leaves_the_success_alone() -> None:
    worker = a_worker()
    one, _two = _leased(worker)
    worker.request_cancel(one.run_id)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: worker.complete([one]), name="complete") as complete,
    ):
        complete.wait_until_blocked()
        with rival(lambda: converge_cancellation(one.run_id, fence=OpenFence()), name="cancel") as cancel:
            cancel.wait_until_blocked()
            lock.release()
            assert complete.result() == [Outcome.APPLIED]
            assert cancel.result()
    assert task_states(one.run_id) == {"a": "succeeded", "b": "canceled"}
    assert the_run(one.run_id).state == "canceled"


@pytest.mark.parametrize(
    ("second", "outcome"), [({}, Outcome.REPLAYED), ({"output": 2}, Outcome.RESULT_CONFLICT)]
)
def test_two_results_of_one_lease_settle_it_once(second: dict[str, int], outcome: Outcome) -> None:
    worker = a_worker()
    one, _two = _leased(worker)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: worker.complete([one]), name="first") as first,
    ):
        first.wait_until_blocked()
        with rival(lambda: worker.complete([one], **second), name="second") as other:
            other.wait_until_blocked()
            lock.release()
            assert first.result() == [Outcome.APPLIED]
            assert other.result() == [outcome]
    assert the_task(one.run_id, "a").output == "null"
    assert moves_of(one.run_id).count(("task", "a", "running", "succeeded")) == 1


def test_a_busy_run_holds_only_its_own_result_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatch.operations.complete.LOCK_TIMEOUT_MS", 100)
    worker = a_worker()
    first, second = a_run([a_task("a")], name="first"), a_run([a_task("a")], name="second")
    queue_all()
    leases = sorted(worker.claim(2).leases, key=lambda lease: lease.run_id != first)
    with hold_run(first):
        assert worker.complete(leases) == [Outcome.RETRY, Outcome.APPLIED]
    assert task_states(second) == {"a": "succeeded"}
    assert worker.complete(leases) == [Outcome.APPLIED, Outcome.REPLAYED]


def test_results_are_settled_run_by_run_only_as_far_as_the_time_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatch.operations.complete.LOCK_TIMEOUT_MS", 50)
    monkeypatch.setattr("dispatch.operations.complete.RUN_BY_RUN_SECONDS", 0.0)
    worker = a_worker()
    first, second = a_run([a_task("a")], name="first"), a_run([a_task("a")], name="second")
    queue_all()
    leases = worker.claim(2).leases
    with hold_run(first):
        assert worker.complete(leases) == [Outcome.RETRY, Outcome.RETRY]
    assert task_states(second) == {"a": "running"}
    assert worker.complete(leases) == [Outcome.APPLIED, Outcome.APPLIED]


def test_a_single_run_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one transaction is the victim of a deadlock: it holds the run and wants the worker, the rival the reverse."""
    tries: list[UUID] = []
    real = RunLedger.open

    def counted(run_ids: list[UUID], **more: Any) -> Any:
        tries.extend(run_ids)
        return real(run_ids, **more)

    worker = a_worker()
    one, _two = _leased(worker)
    monkeypatch.setattr(RunLedger, "open", counted)
    with hold_worker(worker.identity.id) as lock:
        lock.session.execute("SELECT set_config('deadlock_timeout', '60s', true)")  # not the victim
        with rival(lambda: worker.complete([one])) as complete:
            complete.wait_until_blocked()
            lock.take("SELECT 1 FROM workflows_run WHERE id = %s FOR NO KEY UPDATE", [one.run_id])
            assert complete.result() == [Outcome.RETRY]
    assert tries == [one.run_id]
