"""Workers, the queue and the leader: what the reads return, what they cost, and the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dispatch import queries
from dispatch.compatibility import ClassFacts, accepts
from dispatch.models import Leadership, Worker
from dispatch.queries.queue import slot_groups
from dispatch.states import WorkerState
from platform_site.access.models import Tenant
from tests.browser.history import History, TaskFacts, busy_platform, change
from workflows.kernel.states import RunState, TaskState
from workflows.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def history() -> History:
    return History()


def test_the_fleet_is_split_into_those_at_work_and_those_that_left(history: History) -> None:
    busy_platform()
    page = queries.list_workers(tenant_id=history.tenant.id)
    assert [row.display_name for row in page.live] == [
        "worker-2",
        "worker-3",
        "worker-4",
        "worker-5",
        "worker-6",
    ]
    assert {row.display_name for row in page.gone} == {"worker-0", "worker-1"}
    held = {row.display_name: row.active_leases for row in page.live}
    assert held["worker-3"] == 1
    assert sum(held.values()) == 1
    assert (page.more_live, page.more_gone) == (False, False)
    assert queries.list_workers(tenant_id=history.tenant.id, gone_limit=1).more_gone


def test_a_draining_worker_has_no_free_slots(history: History) -> None:
    row = queries.worker_detail(
        tenant_id=history.tenant.id, worker_id=UUID(str(history.worker("w", ["python"], 4, "draining").id))
    )
    assert row is not None
    assert row.free_slots == 0


def test_a_tenant_sees_its_own_workers_and_those_of_all(history: History) -> None:
    other = Tenant.objects.create(slug="other", name="Other")
    shared, own = history.worker("shared", ["python"], 1), history.worker("own", ["python"], 1)
    Worker.objects.filter(id=own.id).update(tenant=other)
    assert [row.display_name for row in queries.list_workers(tenant_id=history.tenant.id).live] == ["shared"]
    assert [row.display_name for row in queries.list_workers(tenant_id=other.id).live] == ["own", "shared"]
    assert queries.worker_detail(tenant_id=history.tenant.id, worker_id=UUID(str(own.id))) is None
    assert queries.worker_detail(tenant_id=other.id, worker_id=UUID(str(shared.id))) is not None


def test_the_queue_is_told_by_class_with_who_could_take_it(history: History) -> None:
    busy_platform()
    overview = queries.queue_overview(tenant_id=history.tenant.id, now=history.now)
    facts = {each.executor_kind: (each.pending, each.offered, each.free_slots) for each in overview.classes}
    assert facts == {"gpu": (1, 0, 0), "python": (1, 3, 47)}
    assert overview.classes[0].executor_kind == "gpu"
    assert (overview.pending, overview.leased, overview.used, overview.slots) == (2, 1, 1, 80)
    assert (overview.active, overview.draining) == (4, 1)
    assert [worker.display_name for worker in overview.lost] == ["worker-1"]


def test_another_tenants_queue_is_not_counted(history: History) -> None:
    busy_platform()
    other = Tenant.objects.create(slug="other", name="Other")
    assert queries.queue_overview(tenant_id=other.id, now=history.now).pending == 0


def test_what_is_offered_is_what_the_compatibility_of_claims_says(history: History) -> None:
    history.worker("w", ["python"], 1)
    (worker,) = queries.list_workers(tenant_id=history.tenant.id).live

    def taken(kind: str, requires: dict[str, str]) -> bool:
        return accepts(worker.acceptor, ClassFacts(1, history.tenant.id, kind, requires))

    assert taken("python", {})
    assert taken("python", {"zone": "a"})
    assert not taken("python", {"zone": "b"})
    assert not taken("python", {"zone": "a", "gpu": "yes"})
    assert not taken("container", {})


def test_groups_add_up_slots_of_the_same_kinds(history: History) -> None:
    history.worker("a", ["python", "agent"], 4)
    history.worker("b", ["agent", "python"], 4)
    history.worker("c", ["mock"], 16)
    groups = slot_groups(queries.list_workers(tenant_id=history.tenant.id).live)
    assert [(group.executor_kinds, group.workers, group.slots) for group in groups] == [
        (("mock",), 1, 16),
        (("agent", "python"), 2, 8),
    ]


def test_the_leader_is_nobody_until_one_led(history: History) -> None:
    Leadership.objects.all().delete()
    assert queries.leader() is None
    history.leader()
    found = queries.leader()
    assert found is not None
    assert (found.holder, found.epoch) == ("coordinator-1", 42)


@pytest.mark.parametrize("size", [1, 30])
def test_reads_cost_the_same_for_few_and_many_rows(
    history: History, size: int, django_assert_num_queries: Any
) -> None:
    tasks = [TaskFacts(f"t-{n}", TaskState.QUEUED) for n in range(size)]
    run = history.run(history.workflow("index", tasks), RunState.RUNNING, tasks, concurrency=size)
    for number, task in enumerate(Task.objects.filter(run=run)):
        history.worker(f"w-{number}", ["python"], 4)
        history.worker(f"gone-{number}", ["python"], 4, "offline")
        history.pending(task, age=timedelta(seconds=number))
    tenant = history.tenant.id
    for statements, read in (
        (3, lambda: queries.list_workers(tenant_id=tenant)),
        (4, lambda: queries.queue_overview(tenant_id=tenant, now=history.now)),
        (1, queries.leader),
    ):
        with django_assert_num_queries(statements):
            read()


class TestPage:
    @pytest.fixture
    def staff(self, client: Client) -> Client:
        client.force_login(User.objects.create_user("operator-1", is_staff=True))
        return client

    def test_it_shows_workers_their_slots_and_those_that_left(self, staff: Client) -> None:
        busy_platform()
        markup = staff.get("/workers").content.decode()
        for words in ("worker-3", "1 of 16", "Left lately", "worker-0", "draining", "zone=a"):
            assert words in markup

    def test_an_empty_fleet_teaches_the_first_step(self, staff: Client) -> None:
        assert "python manage.py worker" in staff.get("/workers").content.decode()

    def test_a_name_is_never_markup(self, staff: Client, history: History) -> None:
        change(history.worker("w", ["python"], 1), display_name="<b>w</b>")
        assert "<b>w" not in staff.get("/workers").content.decode()

    def test_a_worker_that_drills_says_so(self, staff: Client, history: History) -> None:
        worker = history.worker("w", ["mock"], 1)
        change(worker, drills=True)
        assert "drills on" in staff.get("/workers").content.decode()
        assert worker.state == WorkerState.ACTIVE
