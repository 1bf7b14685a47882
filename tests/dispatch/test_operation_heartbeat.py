"""Heartbeats: what is renewed and how far, what is told revoked or unknown, and what was lost on its way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from dispatch.errors import WorkerSessionInvalid
from dispatch.operations.heartbeat import LeaseStatus, NamedLease, heartbeat
from dispatch.operations.mark_offline import mark_offline
from dispatch.operations.reap import reap
from tests.support.aging import (
    control_plane_there,
    let_deadline_pass,
    let_leases_expire,
    let_worker_be_silent,
)
from tests.support.facts import (
    attempt_rows,
    everything_of,
    task_states,
    the_dispatch,
    the_run,
    the_task,
    the_worker,
)
from tests.support.platform import LEASE, OpenFence, a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db


def test_a_lease_is_renewed_to_a_full_duration() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim(lease=timedelta(seconds=5)).leases
    revision = the_run(run_id).revision
    beat = worker.beat([lease])
    [answer] = beat.leases
    assert (beat.worker_state, answer.status, answer.remaining) == ("active", LeaseStatus.RENEWED, LEASE)
    dispatch = the_dispatch(lease.dispatch_id)
    assert dispatch.renewed_at is not None
    assert dispatch.leased_at is not None
    assert dispatch.renewed_at > dispatch.leased_at
    assert dispatch.lease_expires_at == dispatch.renewed_at + LEASE
    assert the_run(run_id).revision == revision


def test_a_renewal_stops_at_the_attempts_deadline() -> None:
    worker = a_worker()
    a_run([a_task("a", timeout_ms=10_000)])
    queue_all()
    [lease] = worker.claim(lease=timedelta(seconds=5)).leases
    [answer] = worker.beat([lease]).leases
    dispatch = the_dispatch(lease.dispatch_id)
    assert dispatch.lease_expires_at == dispatch.attempt_deadline
    assert answer.remaining is not None
    assert timedelta(seconds=9) < answer.remaining <= timedelta(seconds=10)


@pytest.mark.parametrize("end", ["expired", "deadline", "completed", "released"])
def test_a_lease_that_is_over_is_revoked(end: str) -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    ends: dict[str, Callable[[], object]] = {
        "expired": lambda: let_leases_expire([lease]),
        "deadline": lambda: let_deadline_pass([lease]),
        "completed": lambda: worker.complete([lease]),
        "released": lambda: worker.release(lease),
    }
    ends[end]()
    before = the_dispatch(lease.dispatch_id).lease_expires_at
    [answer] = worker.beat([lease]).leases
    assert (answer.status, answer.remaining) == (LeaseStatus.REVOKED, None)
    assert the_dispatch(lease.dispatch_id).lease_expires_at == before


def test_leases_that_never_were_this_workers_are_unknown() -> None:
    worker, other = a_worker(), a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = other.claim().leases
    before = everything_of(run_id)
    named = [
        NamedLease(uuid7(), "guess"),
        NamedLease(lease.dispatch_id, lease.token),
        NamedLease(lease.dispatch_id, "guess"),
    ]
    beat = heartbeat(worker_id=worker.identity.id, leases=named, answered_through=0, lease_duration=LEASE)
    assert [answer.status for answer in beat.leases] == [LeaseStatus.UNKNOWN] * 3
    assert everything_of(run_id) == before


def test_its_own_lease_under_a_wrong_token_is_unknown_and_not_renewed() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim().leases
    before = the_dispatch(lease.dispatch_id).lease_expires_at
    named = [NamedLease(lease.dispatch_id, "guess")]
    beat = heartbeat(worker_id=worker.identity.id, leases=named, answered_through=0, lease_duration=LEASE)
    assert [answer.status for answer in beat.leases] == [LeaseStatus.UNKNOWN]
    assert the_dispatch(lease.dispatch_id).lease_expires_at == before


def test_good_and_bad_leases_are_answered_in_order() -> None:
    worker = a_worker()
    a_run([a_task(key) for key in "abc"])
    queue_all()
    one, two, three = worker.claim(3).leases
    worker.complete([two])
    statuses = [answer.status for answer in worker.beat([three, two, one]).leases]
    assert statuses == [LeaseStatus.RENEWED, LeaseStatus.REVOKED, LeaseStatus.RENEWED]


def test_an_idle_worker_is_heard_too() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=60)
    before = the_worker(worker.identity.id).last_heartbeat_at
    worker.beat([])
    assert the_worker(worker.identity.id).last_heartbeat_at > before + timedelta(seconds=59)


def test_a_draining_worker_still_renews() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    worker.drain()
    beat = worker.beat(leases)
    assert beat.worker_state == "draining"
    assert [answer.status for answer in beat.leases] == [LeaseStatus.RENEWED]


def test_a_session_that_is_over_renews_nothing() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    control_plane_there()
    let_worker_be_silent(worker.identity.id, seconds=60)
    mark_offline(fence=OpenFence(), offline_after=timedelta(seconds=15))
    before = the_dispatch(leases[0].dispatch_id)
    with pytest.raises(WorkerSessionInvalid):
        worker.beat(leases)
    after = the_dispatch(leases[0].dispatch_id)
    assert (after.lease_expires_at, after.renewed_at) == (before.lease_expires_at, before.renewed_at)
    with pytest.raises(WorkerSessionInvalid):
        heartbeat(worker_id=uuid7(), leases=[], answered_through=0, lease_duration=LEASE)


def test_an_answer_that_never_arrived_is_stamped_and_then_given_back() -> None:
    control_plane_there()
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b")])
    queue_all()
    [kept] = worker.claim(1).leases
    [lost] = worker.claim(1).leases
    worker.beat([kept], answered_through=2)
    assert the_dispatch(lost.dispatch_id).lost_at is not None
    assert the_dispatch(kept.dispatch_id).lost_at is None
    assert reap(fence=OpenFence()) == 1
    assert the_dispatch(lost.dispatch_id).state == "released"
    assert attempt_rows(run_id) == [("a", 1, "running"), ("b", 1, "released")]
    task = the_task(run_id, "b")
    assert (task.state, task.attempts, task.attempts_used) == ("ready", 1, 0)
    assert [answer.status for answer in worker.beat([lost]).leases] == [LeaseStatus.REVOKED]


def test_a_claim_still_on_its_way_is_not_lost() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim(1).leases
    worker.beat([], answered_through=0)
    assert the_dispatch(lease.dispatch_id).lost_at is None
    assert task_states(run_id) == {"a": "running"}


def test_a_lost_lease_is_stamped_once() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim(1).leases
    worker.beat([])
    first = the_dispatch(lease.dispatch_id).lost_at
    worker.beat([])
    assert the_dispatch(lease.dispatch_id).lost_at == first is not None
