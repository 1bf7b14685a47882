"""Coordinator duties and runs that somebody holds: past them first, and wait only when nothing else is left."""

from __future__ import annotations

from dispatch.operations.converge_cancellations import converge_cancellations
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.requeue_orphans import requeue_orphans
from dispatch.operations.skips import Skips
from tests.races.holding import hold_run
from tests.support.aging import let_retries_be_due
from tests.support.facts import task_states, the_run
from tests.support.platform import OpenFence, a_run, a_task, a_worker, published, queue_all, started
from tests.support.races import held_lock, rival

AGAIN = {"max_attempts": 2, "interval_ms": 60_000}


def _queue(skips: Skips) -> int:
    return queue_ready(fence=OpenFence(), dispatch_limit=10_000, skips=skips)


def test_a_whole_batch_of_busy_runs_does_not_hide_the_one_behind() -> None:
    a_worker(slots=1024)
    published("flow", [a_task("a")])
    busy = [started("flow") for _ in range(120)]
    behind = started("flow")
    with held_lock("SELECT 1 FROM workflows_run WHERE id = ANY(%s) FOR NO KEY UPDATE", [busy]):
        assert _queue(Skips()) == 1
        assert task_states(behind) == {"a": "queued"}


def test_a_run_that_is_busy_at_every_look_is_waited_for_in_the_second_pass() -> None:
    a_worker()
    run_id = a_run([a_task("a")])
    skips = Skips()
    skips.begin_pass()
    with hold_run(run_id) as lock:
        assert _queue(skips) == 0
        skips.begin_pass()
        with rival(lambda: _queue(skips)) as second:
            second.wait_until_blocked()
            lock.release()
            assert second.result() == 1
    assert task_states(run_id) == {"a": "queued"}


def test_a_run_that_stays_busy_costs_a_second_and_no_error() -> None:
    a_worker()
    run_id = a_run([a_task("a")])
    skips = Skips()
    with hold_run(run_id):
        for _ in range(3):
            skips.begin_pass()
            assert _queue(skips) == 0
    skips.begin_pass()
    assert _queue(skips) == 1


def test_retries_and_orphans_of_busy_runs_are_waited_for_too() -> None:
    worker = a_worker()
    retry = a_run([a_task("a", retry=AGAIN)], name="retry")
    queue_all()
    worker.complete(worker.claim().leases, kind="temporary_failure", error_code="busy")
    let_retries_be_due(retry)
    orphan = a_run([a_task("a")], name="orphan")
    queue_all()
    worker.drain()
    for run_id, duty in ((retry, promote_retries), (orphan, requeue_orphans)):
        skips = Skips()
        skips.begin_pass()
        with hold_run(run_id) as lock:
            assert duty(fence=OpenFence(), skips=skips) == 0
            skips.begin_pass()
            with rival(lambda duty=duty, skips=skips: duty(fence=OpenFence(), skips=skips)) as second:  # type: ignore[misc] # bound per round
                second.wait_until_blocked()
                lock.release()
                assert second.result() == 1
        assert task_states(run_id) == {"a": "ready"}


def test_cancels_that_somebody_blocks_do_not_hold_the_others_up() -> None:
    """However many are held and however old their requests are: they are waited for only when nothing else is left."""
    worker = a_worker()
    published("flow", [a_task("a")])
    blocked, others = [started("flow") for _ in range(5)], [started("flow") for _ in range(2)]
    for run_id in [*blocked, *others]:
        worker.request_cancel(run_id)
    skips = Skips()
    skips.begin_pass()
    with held_lock("SELECT 1 FROM workflows_run WHERE id = ANY(%s) FOR NO KEY UPDATE", [blocked]) as lock:
        assert [converge_cancellations(fence=OpenFence(), skips=skips) for _ in range(3)] == [1, 1, 0]
        assert {the_run(run_id).state for run_id in others} == {"canceled"}
        skips.begin_pass()
        with rival(lambda: converge_cancellations(fence=OpenFence(), skips=skips)) as second:
            second.wait_until_blocked()
            lock.release()
            assert second.result() == 1
    skips.begin_pass()
    assert sum(converge_cancellations(fence=OpenFence(), skips=skips) for _ in range(5)) == 4


def test_cancels_that_nobody_was_seen_holding_come_first_in_the_next_pass() -> None:
    worker = a_worker()
    published("flow", [a_task("a")])
    held, later = started("flow"), started("flow")
    skips = Skips()
    worker.request_cancel(held)
    skips.begin_pass()
    with hold_run(held):
        assert converge_cancellations(fence=OpenFence(), skips=skips) == 0
    worker.request_cancel(later)
    skips.begin_pass()
    assert converge_cancellations(fence=OpenFence(), skips=skips) == 1
    assert [the_run(run_id).state for run_id in (held, later)] == ["pending", "canceled"]


def test_a_stubborn_run_is_found_whatever_its_place() -> None:
    """It is waited for although there is room for fewer than stand before it."""
    a_worker()
    published("flow", [a_task("a")])
    first, busy = started("flow"), started("flow")
    skips = Skips()
    for _ in range(2):
        skips.begin_pass()
        skips.add("queue_ready", [busy])
    with hold_run(first):
        assert queue_ready(fence=OpenFence(), dispatch_limit=1, skips=skips) == 1
    assert task_states(busy) == {"a": "queued"}
