"""A heartbeat against whatever ends a lease that has not run out: the answer tells what stands, not what stood."""

from __future__ import annotations

from dispatch.operations.complete import Outcome
from dispatch.operations.converge_cancellations import converge_cancellation
from dispatch.operations.heartbeat import LeaseStatus
from tests.races.holding import hold_worker
from tests.support.facts import the_dispatch
from tests.support.platform import OpenFence, a_run, a_task, a_worker, queue_all
from tests.support.races import rival


def test_a_heartbeat_behind_a_cancel_hears_revoked() -> None:
    worker = a_worker()
    canceled, kept = a_run([a_task("a")], name="canceled"), a_run([a_task("a")], name="kept")
    queue_all()
    leases = sorted(worker.claim(2).leases, key=lambda lease: lease.run_id != canceled)
    assert [lease.run_id for lease in leases] == [canceled, kept]
    worker.drain()
    worker.request_cancel(canceled)
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: converge_cancellation(canceled, fence=OpenFence()), name="cancel") as cancel,
    ):
        cancel.wait_until_blocked()
        with rival(lambda: worker.beat(leases), name="beat") as beat:
            beat.wait_until_blocked()
            lock.release()
            assert cancel.result()
            statuses = [answer.status for answer in beat.result().leases]
    assert statuses == [LeaseStatus.REVOKED, LeaseStatus.RENEWED]


def test_a_heartbeat_behind_its_own_workers_result_hears_revoked() -> None:
    worker = a_worker()
    a_run([a_task("a"), a_task("b")])
    queue_all()
    done, kept = worker.claim(2).leases
    worker.drain()
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.complete([done])) as complete:
        complete.wait_until_blocked()
        with rival(lambda: worker.beat([done, kept]), name="beat") as beat:
            beat.wait_until_blocked()
            lock.release()
            assert complete.result() == [Outcome.APPLIED]
            statuses = [answer.status for answer in beat.result().leases]
    assert statuses == [LeaseStatus.REVOKED, LeaseStatus.RENEWED]


def test_a_result_behind_a_heartbeat_is_accepted_once_it_is_through() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.beat([lease]), name="beat") as beat:
        beat.wait_until_blocked()
        with rival(lambda: worker.complete([lease]), name="complete") as complete:
            complete.wait_until_blocked()
            lock.release()
            assert [answer.status for answer in beat.result().leases] == [LeaseStatus.RENEWED]
            assert complete.result() == [Outcome.APPLIED]
    assert the_dispatch(lease.dispatch_id).state == "completed"
    assert lease.run_id == run_id
