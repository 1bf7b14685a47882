"""How a worker ends: a drain against its last result, and an offline mark against a heartbeat."""

from __future__ import annotations

from datetime import timedelta

from dispatch.errors import WorkerSessionInvalid
from dispatch.operations.complete import Outcome
from dispatch.operations.drain import stop_drained
from dispatch.operations.mark_offline import mark_offline
from tests.races.holding import hold_ready_queue, hold_worker, raised
from tests.support.aging import let_worker_be_silent
from tests.support.facts import the_run
from tests.support.platform import OpenFence, a_run, a_task, a_worker, queue_all
from tests.support.races import new_session, rival

AFTER = timedelta(seconds=15)


def test_a_drain_that_commits_behind_the_last_results_look_is_finished_by_the_pass() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    queue_all()
    leases = worker.claim().leases
    with hold_ready_queue(run_id) as lock, rival(lambda: worker.complete(leases)) as complete:
        complete.wait_until_blocked()  # it read the worker as active
        assert worker.drain() == "draining"  # the lease still counts
        lock.release()
        assert complete.result() == [Outcome.APPLIED]
    assert worker.state() == "draining"
    assert stop_drained(fence=OpenFence()) == 1
    assert worker.state() == "stopped"


def test_the_last_result_behind_a_drain_stops_the_worker() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    assert worker.drain() == "draining"
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.complete(leases)) as complete:
        complete.wait_until_blocked()
        lock.release()
        assert complete.result() == [Outcome.APPLIED]
    assert (worker.state(), the_run(run_id).state) == ("stopped", "succeeded")


def test_two_last_results_of_a_draining_worker_stop_it() -> None:
    """Each sees the other's lease still held; the one behind looks again under the worker's lock."""
    worker = a_worker()
    a_run([a_task("a")], name="one")
    a_run([a_task("a")], name="two")
    queue_all()
    one, two = worker.claim(2).leases
    worker.drain()
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: worker.complete([one]), name="one") as first,
        rival(lambda: worker.complete([two]), name="two") as second,
    ):
        first.wait_until_blocked()
        second.wait_until_blocked()
        lock.release()
        assert first.result() == second.result() == [Outcome.APPLIED]
    assert worker.state() == "stopped"


def test_a_worker_that_was_heard_in_time_stays() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=60)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: mark_offline(fence=OpenFence(), offline_after=AFTER)) as marking,
    ):
        marking.wait_until_blocked()
        lock.take(
            "UPDATE dispatch_worker SET last_heartbeat_at = clock_timestamp() WHERE id = %s",
            [worker.identity.id],
        )
        lock.release()
        assert marking.result() == 0
    assert worker.state() == "active"


def test_a_heartbeat_behind_the_offline_mark_is_refused() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=60)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: mark_offline(fence=OpenFence(), offline_after=AFTER), name="mark") as marking,
    ):
        marking.wait_until_blocked()
        with rival(raised(lambda: worker.beat([])), name="beat") as beat:
            beat.wait_until_blocked()
            lock.release()
            assert marking.result() == 1
            assert isinstance(beat.result(), WorkerSessionInvalid)
    assert worker.state() == "offline"


def test_the_silent_are_locked_by_ascending_id() -> None:
    """However they lie in the table: it waits for the first and holds no other meanwhile."""
    first, second = sorted(a_worker().identity.id for _ in range(2))
    for worker_id in (second, first):  # what was written last lies last
        let_worker_be_silent(worker_id, seconds=60)
    with (
        hold_worker(first) as lock,
        new_session() as observer,
        rival(lambda: mark_offline(fence=OpenFence(), offline_after=AFTER)) as offline,
    ):
        offline.wait_until_blocked()
        observer.execute("SELECT 1 FROM dispatch_worker WHERE id = %s FOR NO KEY UPDATE NOWAIT", [second])
        lock.release()
        assert offline.result() == 2
