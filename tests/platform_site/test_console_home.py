"""The first page: what needs a person comes first, worst on top."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dispatch.queries import Leader, PendingClass, QueueOverview, WorkerRow
from dispatch.states import WorkerState
from platform_site.home import needs
from tests.browser.history import busy_platform
from workflows.kernel.states import RunState, TaskState
from workflows.queries import RunRow, RunsOverview

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LEADER = Leader("coordinator-1", 42, NOW - timedelta(hours=1), NOW - timedelta(seconds=1))


def run(number: int = 1, **facts: Any) -> RunRow:
    values: dict[str, Any] = {
        "id": UUID(int=number << 80),
        "workflow": "index",
        "version": 1,
        "state": RunState.FAILED,
        "priority": 0,
        "labels": {},
        "tasks_total": 1,
        "counts": dict.fromkeys(TaskState, 0),
        "cancel_requested_at": None,
        "created_at": NOW - timedelta(minutes=22),
        "created_by": "api:docs",
        "started_at": NOW - timedelta(minutes=21),
        "finished_at": NOW - timedelta(minutes=20),
        "trigger": "person",
    }
    return RunRow(**{**values, **facts})


def runs(**facts: Any) -> RunsOverview:
    values: dict[str, Any] = {
        "recent": (),
        "failed": (),
        "stalled": (),
        "approval_waits": (),
        "ready_tasks": 0,
    }
    return RunsOverview(**{**values, **facts})


def queue(**facts: Any) -> QueueOverview:
    values: dict[str, Any] = {
        "pending": 0,
        "leased": 0,
        "oldest_at": None,
        "classes": (),
        "groups": (),
        "active": 1,
        "draining": 0,
        "lost": (),
    }
    return QueueOverview(**{**values, **facts})


def titles(**facts: Any) -> list[str]:
    values: dict[str, Any] = {"runs": runs(), "queue": queue(), "leading": LEADER, "now": NOW}
    return [need.title for need in needs(**{**values, **facts})]


def test_a_healthy_platform_needs_nobody() -> None:
    assert titles() == []


def test_no_coordinator_and_a_silent_one_are_told_apart() -> None:
    silent = Leader("coordinator-1", 42, NOW, NOW - timedelta(seconds=16))
    assert titles(leading=None) == ["No coordinator leads"]
    assert titles(leading=silent) == ["The coordinator is silent"]


def test_work_without_any_worker() -> None:
    assert titles(queue=queue(active=0)) == []
    assert titles(queue=queue(active=0, pending=3)) == ["No worker is active"]
    assert titles(queue=queue(active=0), runs=runs(ready_tasks=1)) == ["No worker is active"]


def test_a_class_that_no_worker_takes_names_kind_and_labels() -> None:
    stuck = PendingClass("container", {"gpu": "yes"}, 318, NOW - timedelta(minutes=2), 0, 0)
    fine = PendingClass("python", {}, 5, NOW, 2, 0)
    (need,) = needs(runs=runs(), queue=queue(classes=(stuck, fine)), leading=LEADER, now=NOW)
    assert need.title == "318 tasks have no worker"
    assert "container with gpu=yes" in need.text


def test_failed_runs_are_counted_up_to_the_cut() -> None:
    assert titles(runs=runs(failed=(run(),))) == ["1 run failed in the last day"]
    many = tuple(run(number) for number in range(100))
    assert titles(runs=runs(failed=many)) == ["100 or more runs failed in the last day"]


def test_the_worst_comes_first() -> None:
    lost = WorkerRow(
        id=UUID(int=1),
        display_name="worker-1",
        state=WorkerState.OFFLINE,
        executor_kinds=("python",),
        labels={},
        max_concurrency=1,
        active_leases=0,
        protocol_version=1,
        drills=False,
        for_one_tenant=False,
        registered_at=NOW,
        last_heartbeat_at=NOW,
        stopped_at=None,
    )
    found = titles(
        runs=runs(failed=(run(),), approval_waits=(run(state=RunState.RUNNING),), stalled=(run(),)),
        queue=queue(lost=(lost,)),
    )
    assert found == [
        "1 run failed in the last day",
        "1 run needs approval",
        "1 worker went offline",
        "1 run makes no progress",
    ]


@pytest.mark.django_db
def test_an_empty_platform_teaches_the_first_step(client: Client) -> None:
    client.force_login(User.objects.create_user("operator-1", is_staff=True))
    markup = client.get("/").content.decode()
    assert "make demo" in markup
    assert "python manage.py worker" in markup
    assert "python manage.py coordinator" in markup


@pytest.mark.django_db
def test_the_page_shows_what_is_there_in_a_fixed_number_of_statements(
    client: Client, django_assert_num_queries: Any
) -> None:
    client.force_login(User.objects.create_user("operator-1", is_staff=True))
    busy_platform()
    # session, user, tenant; 5 of the runs, 4 of the queue, 1 of the leader
    with django_assert_num_queries(13):
        markup = client.get("/").content.decode()
    for words in ("1 task has no worker", "1 run failed in the last day", "coordinator-1", "1 of 48"):
        assert words in markup
