"""The reaper against a heartbeat and against a result: whoever has the locks first decides, and only once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dispatch.operations.claim import Lease
from dispatch.operations.complete import Outcome
from dispatch.operations.heartbeat import LeaseStatus
from dispatch.operations.reap import reap
from dispatch.statements import sql
from tests.races.holding import hold_worker, wait_for_expiry
from tests.support.aging import let_leases_expire
from tests.support.facts import attempt_rows, everything_of, task_states, the_dispatch
from tests.support.platform import OpenFence, TestWorker, a_run, a_task, a_worker, queue_all
from tests.support.races import rival

AGAIN = {"max_attempts": 2, "interval_ms": 60_000}
SHORT = timedelta(milliseconds=400)


def _reap() -> int:
    return reap(fence=OpenFence())


def _two_leases(worker: TestWorker, *, lease: timedelta = timedelta(seconds=15)) -> list[Lease]:
    a_run([a_task("a", retry=AGAIN), a_task("b", retry=AGAIN)])
    queue_all()
    return worker.claim(2, lease=lease).leases


def test_a_heartbeat_that_came_in_time_keeps_its_lease_from_the_reaper() -> None:
    worker = a_worker()
    one, two = _two_leases(worker, lease=SHORT)
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.beat([one, two])) as beat:
        beat.wait_until_blocked()  # both renewed, not committed
        wait_for_expiry(one.dispatch_id)
        assert _reap() == 0  # it sees the old expiry, and finds the rows held
        lock.release()
        assert [answer.status for answer in beat.result().leases] == [LeaseStatus.RENEWED] * 2
    assert _reap() == 0
    assert attempt_rows(one.run_id) == [("a", 1, "running"), ("b", 1, "running")]


def test_a_renewal_between_the_reapers_look_and_its_lock_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidates were read; the heartbeat commits before they are locked."""
    worker = a_worker()
    one, two = _two_leases(worker, lease=SHORT)
    real = sql.rows

    def beat_first(name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        if name == "reap_lock":
            lock.release()
            beat.result()
        return real(name, **params)

    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.beat([one, two])) as beat:
        beat.wait_until_blocked()
        wait_for_expiry(one.dispatch_id)
        monkeypatch.setattr(sql, "rows", beat_first)
        assert _reap() == 0
        assert not beat.running
        monkeypatch.undo()
    assert the_dispatch(one.dispatch_id).state == "leased"


def test_a_heartbeat_behind_the_reaper_hears_revoked() -> None:
    worker = a_worker()
    gone, kept = _two_leases(worker)
    let_leases_expire([gone])
    worker.drain()
    with (
        hold_worker(worker.identity.id) as lock,
        rival(_reap, name="reap") as reaper,
    ):
        reaper.wait_until_blocked()  # the attempt is ended, not committed
        with rival(lambda: worker.beat([gone, kept]), name="beat") as beat:
            beat.wait_until_blocked()
            lock.release()
            assert reaper.result() == 1
            statuses = [answer.status for answer in beat.result().leases]
    assert statuses == [LeaseStatus.REVOKED, LeaseStatus.RENEWED]
    assert attempt_rows(gone.run_id) == [("a", 1, "interrupted"), ("b", 1, "running")]


def test_a_result_that_came_in_time_is_not_reaped() -> None:
    worker = a_worker()
    one, two = _two_leases(worker, lease=SHORT)
    worker.drain()
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.complete([one])) as complete:
        complete.wait_until_blocked()
        wait_for_expiry(one.dispatch_id)
        assert _reap() == 0
        lock.release()
        assert complete.result() == [Outcome.APPLIED]
    assert _reap() == 1
    assert attempt_rows(one.run_id) == [("a", 1, "succeeded"), ("b", 1, "interrupted")]
    assert two.task_key == "b"


def test_a_result_behind_the_reaper_is_refused_and_changes_nothing() -> None:
    worker = a_worker()
    one, _two = _two_leases(worker)
    let_leases_expire([one])
    worker.drain()
    with hold_worker(worker.identity.id) as lock, rival(_reap, name="reap") as reaper:
        reaper.wait_until_blocked()
        with rival(lambda: worker.complete([one]), name="complete") as complete:
            complete.wait_until_blocked()
            lock.release()
            assert reaper.result() == 1
            assert complete.result() == [Outcome.LEASE_LOST]
    assert task_states(one.run_id) == {"a": "waiting_retry", "b": "running"}
    before = everything_of(one.run_id)
    assert worker.complete([one]) == [Outcome.LEASE_LOST]
    assert everything_of(one.run_id) == before


def test_two_reapers_end_a_lease_once() -> None:
    worker = a_worker()
    one, two = _two_leases(worker)
    let_leases_expire([one, two])
    worker.drain()
    with hold_worker(worker.identity.id) as lock, rival(_reap) as first:
        first.wait_until_blocked()
        assert _reap() == 0
        lock.release()
        assert first.result() == 2
    assert attempt_rows(one.run_id) == [("a", 1, "interrupted"), ("b", 1, "interrupted")]
