"""The admin of the run history: it shows and asks, and stays fast on large tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from platform_site.console import admin_base
from tests.browser.history import History, TaskFacts, busy_platform
from workflows import admin
from workflows.kernel.states import RunState, TaskState
from workflows.models import Run, Task, WorkflowVersion
from workflows.operations.request_cancel import CancelAnswer

pytestmark = pytest.mark.django_db

MODELS = [model for label in ("workflows", "dispatch") for model in apps.get_app_config(label).get_models()]
OURS = tuple(apps.get_app_config("workflows").get_models())


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def address(model: type[Any], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_model_is_registered_searchable_and_read_only(model: type[Any], root: Client) -> None:
    site = django_admin.site._registry[model]
    assert isinstance(site, admin_base.ReadOnlyAdmin)
    busy_platform()
    answer = root.get(address(model, "changelist"))
    assert answer.status_code == 200
    assert root.get(address(model, "add")).status_code == 403
    row = model._default_manager.order_by("-pk").first()
    if row is None:
        return
    page = root.get(address(model, "change", row.pk))
    assert page.status_code == 200
    assert 'name="_save"' not in page.content.decode()
    assert root.post(address(model, "change", row.pk), {"state": "failed"}).status_code == 403
    assert root.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert root.get(address(model, "changelist") + f"?q={row.pk}").status_code == 200
    assert root.get(address(model, "changelist") + "?q=words").status_code == 200
    form = site.get_form(answer.wsgi_request, row)
    assert list(form.base_fields) == []


def test_secrets_and_digests_are_never_shown(root: Client) -> None:
    busy_platform()
    for model in MODELS:
        row = model._default_manager.first()
        if row is not None:
            assert "digest" not in root.get(address(model, "change", row.pk)).content.decode()


def test_a_run_shows_its_tasks_attempts_and_events_bounded(root: Client) -> None:
    history = History()
    tasks = [TaskFacts(f"t-{n:03d}", TaskState.SUCCEEDED, attempts=("succeeded",)) for n in range(70)]
    run = history.run(history.workflow("index", tasks), RunState.SUCCEEDED, tasks)
    history.events(run, [("task", "t-000", "ready", "queued", f"reason {n}") for n in range(70)])
    answer = root.get(address(Run, "change", run.pk))
    shown = [
        [form.form.instance for form in inline if form.original is not None]
        for inline in answer.context["inline_admin_formsets"]
    ]
    assert [len(rows) for rows in shown] == [50, 50, 50]
    assert [shown[0][0].key, shown[1][0].task.key, shown[2][0].seq] == ["t-000", "t-069", 70]
    markup = answer.content.decode()
    assert "the first 50" in markup
    assert reverse("run", kwargs={"run_id": run.id}) in markup


@pytest.mark.parametrize("size", [1, 60])
def test_pages_cost_the_same_for_few_and_many_rows(
    root: Client, size: int, django_assert_num_queries: Any
) -> None:
    history = History()
    tasks = [TaskFacts(f"t-{n}", TaskState.SUCCEEDED, attempts=("succeeded",)) for n in range(size)]
    version = history.workflow("index", tasks)
    for minute in range(min(size, 8)):
        run = history.run(version, RunState.SUCCEEDED, tasks, age=timedelta(minutes=minute + 1))
    history.events(run, [("task", f"t-{n}", "ready", "queued", "enqueued") for n in range(size)])
    # session, user; where the list of recent rows begins; the bounded count; the rows; tenants of the filter
    costs = {"Run": 6, "Task": 6, "Attempt": 5, "AttemptLog": 5, "StateEvent": 5, "WorkflowVersion": 5}
    for model in OURS:
        if model.__name__ in costs:
            root.get(address(model, "changelist"))  # content types and the like, once
            with django_assert_num_queries(costs[model.__name__]):
                assert root.get(address(model, "changelist")).status_code == 200
    # session, user, the run, its version, workflow, tenant; three inlines
    with django_assert_num_queries(9):
        root.get(address(Run, "change", run.pk))


def test_a_list_counts_no_further_than_its_bound(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_base, "COUNTED_ROWS", 20)
    history = History()
    tasks = [TaskFacts(f"t-{n:03d}", TaskState.READY) for n in range(45)]
    history.run(history.workflow("index", tasks), RunState.RUNNING, tasks)
    answer = root.get(address(Task, "changelist"))
    assert answer.context["cl"].paginator.count == 20


def test_a_list_begins_with_recent_rows_and_the_search_reaches_all(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_base, "RECENT_ROWS", 10)
    history = History()
    tasks = [TaskFacts(f"t-{n:03d}", TaskState.READY) for n in range(15)]
    version = history.workflow("index", tasks)
    old = history.run(version, RunState.RUNNING, tasks, age=timedelta(hours=1))
    history.run(version, RunState.RUNNING, tasks)
    shown = root.get(address(Task, "changelist")).context["cl"].result_list
    assert len(shown) == 10
    assert {task.run_id for task in shown}.isdisjoint({old.id})
    found = root.get(address(Task, "changelist") + f"?q={old.id}").context["cl"].result_list
    assert len(found) == 15
    narrowed = root.get(address(Task, "changelist") + f"?q={old.id}&state__exact=failed")
    assert len(narrowed.context["cl"].result_list) == 0


def test_long_texts_are_cut(root: Client) -> None:
    history = History()
    long = [TaskFacts("only", TaskState.SUCCEEDED, attempts=("succeeded",), output='"' + "x" * 9000 + '"')]
    run = history.run(history.workflow("index", long), RunState.SUCCEEDED, long)
    markup = root.get(address(Task, "change", Task.objects.get(run=run).pk)).content.decode()
    assert "4,906 more characters" in markup
    assert "x" * 5000 not in markup
    version = WorkflowVersion.objects.get()
    assert "&quot;tasks&quot;" in root.get(address(WorkflowVersion, "change", version.pk)).content.decode()


class TestCancel:
    """The action asks the operation and tells what moved and what did not."""

    @pytest.fixture
    def runs(self) -> list[Run]:
        history, tasks = History(), [TaskFacts("only", TaskState.READY)]
        version = history.workflow("index", tasks)
        return [
            history.run(version, RunState.RUNNING, tasks, age=timedelta(minutes=minute + 1))
            for minute in range(3)
        ]

    def cancel(self, client: Client, runs: list[Run]) -> list[str]:
        answer = client.post(
            address(Run, "changelist"),
            {"action": "cancel_selected", "_selected_action": [str(run.pk) for run in runs]},
        )
        return [str(message) for message in get_messages(answer.wsgi_request)]

    def test_it_tells_what_moved_and_what_did_not(
        self, root: Client, runs: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[dict[str, Any]] = []

        def stand_in(**facts: Any) -> list[CancelAnswer]:
            calls.append(facts)
            ids = facts["run_ids"]
            return [
                CancelAnswer(ids[0], RunState.RUNNING, History().now, requested=True),
                CancelAnswer(ids[1], RunState.RUNNING, History().now, requested=False),
                CancelAnswer(ids[2], RunState.SUCCEEDED, None, requested=False),
            ]

        monkeypatch.setattr(admin, "request_cancel", stand_in)
        assert self.cancel(root, runs) == [
            "1 run is being canceled.",
            "1 run was being canceled already.",
            "1 run had already finished; nothing to cancel.",
        ]
        assert calls == [{"run_ids": ANY, "tenant_id": None, "actor": "user:root"}]
        assert set(calls[0]["run_ids"]) == {UUID(str(run.id)) for run in runs}

    def test_too_many_at_once_are_refused_whole(
        self, root: Client, runs: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(admin, "CANCEL_AT_ONCE", 2)
        monkeypatch.delattr(admin, "request_cancel")  # a call would be an error
        assert self.cancel(root, runs) == ["At most 2 runs at once; nothing was canceled. Select fewer."]

    def test_who_may_only_look_is_not_offered_it(
        self, client: Client, runs: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_run"))
        client.force_login(viewer)
        monkeypatch.delattr(admin, "request_cancel")
        assert client.get(address(Run, "changelist")).status_code == 200
        assert "cancel_selected" not in client.get(address(Run, "changelist")).content.decode()
        self.cancel(client, runs)
