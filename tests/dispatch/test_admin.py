"""The admin of workers and dispatches; what all of our admin shares is tested with the run history's."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dispatch.models import Dispatch, Worker
from tests.browser.history import History, TaskFacts, busy_platform
from workflows.kernel.states import RunState, TaskState
from workflows.models import Run, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_dispatches_are_found_by_run_and_by_worker(root: Client) -> None:
    run = busy_platform()
    page = reverse("admin:dispatch_dispatch_changelist")
    found = root.get(f"{page}?q={run}").context["cl"].result_list
    assert {dispatch.run_id for dispatch in found} == {Run.objects.get(id=run).id}
    (held,) = root.get(f"{page}?q=worker-3").context["cl"].result_list
    assert held.worker.display_name == "worker-3"
    (pending, _) = root.get(f"{page}?state__exact=pending").context["cl"].result_list
    assert pending.state == "pending"


def test_a_worker_is_found_by_id_and_shows_what_it_holds(root: Client) -> None:
    busy_platform()
    worker = Worker.objects.get(display_name="worker-3")
    found = (
        root.get(reverse("admin:dispatch_worker_changelist") + f"?q={worker.id}").context["cl"].result_list
    )
    assert [row.pk for row in found] == [worker.pk]
    markup = root.get(reverse("admin:dispatch_worker_change", args=[worker.pk])).content.decode()
    assert "clean-c" in markup
    assert "session_digest" not in markup


@pytest.mark.parametrize("size", [1, 30])
def test_lists_cost_the_same_for_few_and_many_rows(
    root: Client, size: int, django_assert_num_queries: Any
) -> None:
    history = History()
    tasks = [TaskFacts(f"t-{n}", TaskState.QUEUED) for n in range(size)]
    run = history.run(history.workflow("index", tasks), RunState.RUNNING, tasks, concurrency=size)
    worker = history.worker("w", ["python"], 64)
    for number, task in enumerate(Task.objects.filter(run=run)):
        history.worker(f"w-{number}", ["python"], 4)
        if number % 2:
            history.pending(task)
        else:
            history.lease(worker, task)
    # session, user, where recent rows begin, the bounded count, the rows
    for model in (Worker, Dispatch):
        with django_assert_num_queries(5):
            root.get(reverse(f"admin:dispatch_{model.__name__.lower()}_changelist"))
    with django_assert_num_queries(4):
        root.get(reverse("admin:dispatch_worker_change", args=[worker.pk]))
