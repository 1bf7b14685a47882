"""Queueing ready tasks: in turn, within every bound, and past whatever cannot go on."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.models import Dispatch
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.skips import Skips
from platform_site.access.models import Tenant
from platform_site.access.tenants import default_tenant
from tests.support.aging import let_turn_come
from tests.support.facts import everything_of, moves_of, ready_rows, task_states, the_run
from tests.support.platform import (
    KINDS,
    OpenFence,
    ShutFence,
    a_definition,
    a_run,
    a_task,
    a_worker,
    published,
    queue_all,
    started,
)
from workflows.models import TaskClass
from workflows.operations.publish_version import publish_workflow
from workflows.operations.start_run import RunRequest, start_run

pytestmark = pytest.mark.django_db


def _queue_once(*, dispatch_limit: int = 10_000) -> int:
    return queue_ready(fence=OpenFence(), dispatch_limit=dispatch_limit, skips=Skips())


def _served() -> list[tuple[UUID, str]]:
    return list(Dispatch.objects.order_by("seq").values_list("run_id", "task__key"))


def _tasks(count: int, **more: Any) -> list[dict[str, Any]]:
    return [a_task(f"t{number}", **more) for number in range(count)]


def _run_of(tenant: Tenant, name: str, count: int) -> UUID:
    document = a_definition(name, _tasks(count))
    publish_workflow(tenant_id=tenant.id, document=document, created_by="test", executors=KINDS)
    return start_run(RunRequest(workflow=name), tenant_id=tenant.id, created_by="test").run_id


def test_a_ready_task_is_queued_and_the_run_begins() -> None:
    a_worker()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    assert _queue_once() == 1
    run = the_run(run_id)
    assert (run.state, run.revision, run.tasks_queued, run.tasks_ready) == ("running", 1, 1, 0)
    assert run.started_at == run.last_dispatched_at == run.turn_at is not None
    assert moves_of(run_id)[1:] == [
        ("run", str(run_id), "pending", "running"),
        ("task", "a", "ready", "queued"),
    ]
    [dispatch] = Dispatch.objects.all()
    assert (dispatch.run_id, dispatch.state, dispatch.worker_id) == (run_id, "pending", None)
    assert ready_rows(run_id) == [(0, True)]
    assert _queue_once() == 0


def test_nothing_is_queued_without_a_worker_that_accepts_it() -> None:
    run_id = a_run([a_task("a")])
    assert _queue_once() == 0
    a_worker(kinds=["python"])
    assert _queue_once() == 0
    assert task_states(run_id) == {"a": "ready"}


def test_a_leader_that_no_longer_leads_writes_nothing() -> None:
    a_worker()
    run_id = a_run([a_task("a")])
    before = everything_of(run_id)
    with pytest.raises(LeadershipLost):
        queue_ready(fence=ShutFence(), dispatch_limit=100, skips=Skips())
    assert everything_of(run_id) == before


def test_every_run_gets_its_first_task_before_any_gets_its_second() -> None:
    a_worker()
    published("flow", _tasks(3))
    runs = [started("flow") for _ in range(3)]
    assert queue_all() == 9
    assert [key for _, key in _served()] == ["t0"] * 3 + ["t1"] * 3 + ["t2"] * 3
    assert [run_id for run_id, _ in _served()] == runs * 3


def test_the_run_that_waited_longest_is_first_and_served_runs_go_to_the_back() -> None:
    a_worker()
    published("flow", _tasks(2))
    first, second, third = (started("flow") for _ in range(3))
    let_turn_come(third, seconds=60)
    order: list[UUID] = []
    for _ in range(6):
        assert _queue_once(dispatch_limit=len(order) + 1) == 1
        order.append(_served()[-1][0])
    assert order == [third, first, second] * 2


def test_a_level_of_priority_is_worth_five_seconds_of_waiting() -> None:
    a_worker()
    published("flow", _tasks(1))
    patient = started("flow")
    urgent = started("flow", priority=2)
    let_turn_come(patient, seconds=9)
    _queue_once(dispatch_limit=1)
    assert _served() == [(urgent, "t0")]
    patient_2, urgent_2 = started("flow"), started("flow", priority=2)
    let_turn_come(patient, seconds=100)
    let_turn_come(patient_2, seconds=11)
    queue_all()
    assert [run_id for run_id, _ in _served()] == [urgent, patient, patient_2, urgent_2]


def test_tenants_take_turns_however_many_runs_each_has() -> None:
    a_worker()
    big, small = default_tenant(), Tenant.objects.create(slug="small", name="Small")
    published("flow", _tasks(1))
    of_big = [started("flow") for _ in range(3)]
    of_small = _run_of(small, "flow", 3)
    queue_all()
    tenants = list(Dispatch.objects.order_by("seq").values_list("task__run__tenant", flat=True))
    # Seat 1 of each tenant, then seats 2 and 3 of the big one, then the second task of the small one's run.
    assert sorted(tenants[:2]) == sorted([big.id, small.id])
    assert Counter(tenants) == {big.id: 3, small.id: 3}
    assert [run_id for run_id, _ in _served() if run_id != of_small] == of_big


def test_with_a_limit_of_one_tenants_alternate() -> None:
    a_worker()
    small = Tenant.objects.create(slug="small", name="Small")
    published("flow", _tasks(1))
    for _ in range(4):
        started("flow")
    _run_of(small, "flow", 4)
    for limit in range(1, 7):
        assert _queue_once(dispatch_limit=limit) == 1
    tenants = list(Dispatch.objects.order_by("seq").values_list("task__run__tenant", flat=True))
    assert all(one != other for one, other in itertools.pairwise(tenants))


def test_pending_of_a_class_never_exceeds_the_slots_that_accept_it() -> None:
    a_worker(slots=3, kinds=["mock"])
    a_worker(slots=2, kinds=["mock", "python"])
    a_run([*(a_task(f"p{n}", executor="python", action="x") for n in range(9)), *_tasks(9)])
    queue_all()
    by_kind = Counter(Dispatch.objects.values_list("task_class__executor_kind", flat=True))
    assert by_kind == {"python": 2, "mock": 3}  # each worker's slots are counted once


def test_leased_work_does_not_fill_the_room_for_pending() -> None:
    worker = a_worker(slots=2)
    a_run(_tasks(6))
    assert queue_all() == 2
    worker.claim(2)
    assert queue_all() == 2
    assert queue_all() == 0


def test_the_dispatch_limit_counts_pending_and_leased() -> None:
    worker = a_worker(slots=16)
    a_run(_tasks(9))
    assert queue_all(dispatch_limit=4) == 4
    leases = worker.claim(2).leases
    assert queue_all(dispatch_limit=4) == 0
    worker.complete(leases)
    assert queue_all(dispatch_limit=4) == 2


def test_concurrency_bounds_queued_and_running_of_a_run() -> None:
    worker = a_worker()
    run_id = a_run(_tasks(5), concurrency=2)
    assert queue_all() == 2
    assert ready_rows(run_id) == [(3, False)]
    leases = worker.claim(2).leases
    assert queue_all() == 0
    worker.complete(leases[:1])
    assert ready_rows(run_id) == [(3, True)]
    assert queue_all() == 1


def test_quotas_bound_a_tenant_and_nobody_else() -> None:
    worker = a_worker()
    Tenant.objects.filter(pk=default_tenant().pk).update(max_queued=2, max_running=3)
    free = Tenant.objects.create(slug="free", name="Free")
    bounded = a_run(_tasks(6))
    unbounded = _run_of(free, "flow", 6)
    queue_all()
    assert Counter(run_id for run_id, _ in _served()) == {bounded: 2, unbounded: 6}
    leases = worker.claim(16).leases
    queue_all()
    assert Counter(run_id for run_id, _ in _served())[bounded] == 3  # two running, one queued
    worker.complete([lease for lease in leases if lease.run_id == bounded])
    queue_all()
    assert Counter(run_id for run_id, _ in _served())[bounded] == 4  # one was still queued, and two may be


def test_a_tenant_at_its_quota_does_not_hide_the_runs_behind_it() -> None:
    a_worker()
    Tenant.objects.filter(pk=default_tenant().pk).update(max_queued=0)
    published("flow", _tasks(1))
    for _ in range(3):
        started("flow")
    free = Tenant.objects.create(slug="free", name="Free")
    behind = _run_of(free, "flow", 1)
    assert _queue_once(dispatch_limit=1) == 1
    assert _served() == [(behind, "t0")]


def test_a_kind_that_is_absent_blocks_nothing_within_its_run() -> None:
    a_worker(kinds=["mock"])
    run_id = a_run([a_task("first", executor="python", action="x"), *_tasks(2)])
    assert queue_all() == 2
    assert task_states(run_id) == {"first": "ready", "t0": "queued", "t1": "queued"}


def test_a_class_at_its_bound_blocks_nothing_within_its_run() -> None:
    a_worker(slots=1, kinds=["python"])
    a_worker(slots=2, kinds=["mock"])
    run_id = a_run([*(a_task(f"p{n}", executor="python", action="x") for n in range(3)), *_tasks(2)])
    assert queue_all() == 3
    assert Counter(task_states(run_id).values()) == {"queued": 3, "ready": 2}


def test_a_kind_that_is_absent_blocks_nothing_across_runs() -> None:
    a_worker(kinds=["mock"])
    published("stuck", [a_task("p", executor="python", action="x")])
    for _ in range(120):  # more than the runs that one batch looks at
        started("stuck")
    behind = a_run(_tasks(1))
    assert _queue_once(dispatch_limit=1) == 1
    assert _served() == [(behind, "t0")]


def test_labels_choose_the_worker() -> None:
    a_worker(labels={"zone": "x"})
    run_id = a_run([a_task("here", requires={"zone": "x"}), a_task("there", requires={"zone": "y"})])
    assert queue_all() == 1
    assert task_states(run_id) == {"here": "queued", "there": "ready"}
    a_worker(labels={"zone": "y", "gpu": "yes"})
    assert queue_all() == 1


def test_a_draining_worker_is_no_room() -> None:
    worker = a_worker(slots=2)
    a_run(_tasks(4))
    queue_all()
    worker.claim(1)
    worker.drain()
    assert queue_all() == 0


def test_only_the_classes_with_room_are_looked_at() -> None:
    a_worker(slots=1, kinds=["mock"])
    a_run(_tasks(3))
    assert queue_all() == 1
    assert TaskClass.objects.count() == 1
    assert Dispatch.objects.count() == 1
