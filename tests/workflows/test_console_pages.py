"""Pages of runs, tasks and workflows."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.browser.history import History, TaskFacts, busy_platform, change, handbook_tasks
from workflows.console import views
from workflows.errors import RunNotFound
from workflows.kernel.states import RunState, TaskState
from workflows.models import Run
from workflows.operations.request_cancel import CancelAnswer

pytestmark = pytest.mark.django_db
NOBODY = UUID(int=7)


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_user("operator-1", is_staff=True))
    return client


def text_of(client: Client, address: str, **extra: Any) -> str:
    answer = client.get(address, **extra)
    assert answer.status_code == 200, address
    return answer.content.decode()


def test_every_page_is_shown(staff: Client) -> None:
    run = busy_platform()
    for address, words in {
        "/runs": "index-handbook",
        "/runs?state=failed": "Failed runs",
        "/runs?workflow=nobody": "No run matches",
        f"/runs/{run}": "Why it waits",
        f"/runs/{run}?tab=events": "lease expired",
        f"/runs/{run}?tab=params": "without params",
        f"/runs/{run}?tab=attempts": "interrupted",
        f"/runs/{run}?tab=attempts&state=timed_out": "No attempt",
        f"/runs/{run}?state=running": "Show all tasks",
        f"/runs/{run}/cancel": "Cancel this run?",
        f"/runs/{run}/tasks/clean-c": "page 31 of 50",
        f"/runs/{run}/tasks/clean-d": "rate_limited",
        f"/runs/{run}/tasks/list": "&quot;files&quot;: 48",
        "/workflows": "invoice-extract",
        "/workflows/index-handbook": "Versions",
        "/workflows/index-handbook/versions/7": "SHA-256",
    }.items():
        assert words in text_of(staff, address), address


@pytest.mark.parametrize(
    "address",
    [
        f"/runs/{NOBODY}",
        f"/runs/{NOBODY}/cancel",
        f"/runs/{NOBODY}/tasks/a",
        "/workflows/nobody",
        "/workflows/nobody/versions/1",
        "/workflows/nobody/versions/" + "9" * 30,
    ],
)
def test_what_is_not_there_is_a_404(staff: Client, address: str) -> None:
    assert staff.get(address).status_code == 404


def test_nonsense_in_an_address_is_a_400(staff: Client) -> None:
    run = busy_platform()
    for address in (
        "/runs?state=paused",
        "/runs?at=nonsense",
        "/runs?workflow=%00",
        "/workflows/%00",
        f"/runs/{run}/tasks/%00",
        f"/runs/{run}?tab=secrets",
        f"/runs/{run}?state=paused",
        f"/runs/{run}?tab=attempts&state=paused",
        f"/runs/{run}?at=nonsense",
        f"/runs/{run}?tab=events&before=-1",
        f"/runs/{run}?tab=events&before={'9' * 40}",
        "/workflows?at=nonsense",
        "/workflows/index-handbook?before=x",
    ):
        answer = staff.get(address)
        assert answer.status_code == 400, address
        assert "cannot be read" in answer.content.decode()


def test_only_a_run_that_can_change_polls(staff: Client) -> None:
    history = History()
    tasks = [TaskFacts("only", TaskState.SUCCEEDED, attempts=("succeeded",))]
    version = history.workflow("index", tasks)
    done = history.run(version, RunState.SUCCEEDED, tasks)
    running = history.run(version, RunState.RUNNING, [TaskFacts("only", TaskState.READY)])
    assert "hx-trigger" not in text_of(staff, f"/runs/{done.id}")
    assert "hx-trigger" not in text_of(staff, f"/runs/{done.id}/tasks/only")
    assert f'hx-get="/runs/{running.id}"' in text_of(staff, f"/runs/{running.id}")
    assert f'hx-get="/runs/{running.id}/tasks/only"' in text_of(staff, f"/runs/{running.id}/tasks/only")


def test_a_live_list_of_runs_asks_for_the_rows_it_shows(staff: Client) -> None:
    history = History()
    tasks = [TaskFacts("only", TaskState.READY)]
    version = history.workflow("index", tasks)
    history.run(version, RunState.RUNNING, tasks, age=timedelta(minutes=2))
    found = re.search(r'hx-get="(/runs\?at=[^"]+)"', text_of(staff, "/runs"))
    assert found is not None
    new = history.run(version, RunState.RUNNING, tasks, age=timedelta(seconds=1))
    part = text_of(staff, found.group(1), headers={"HX-Request": "true"})
    assert f"run-{new.id}" not in part
    assert "Newer runs came" in part
    assert f"run-{new.id}" in text_of(staff, "/runs")


def test_live_events_count_the_newer_ones_and_stay(staff: Client) -> None:
    run = Run.objects.get(id=busy_platform())
    found = re.search(r'hx-get="([^"]+)"', text_of(staff, f"/runs/{run.id}?tab=events"))
    assert found is not None
    History().events(run, [("task", "clean-d", "waiting_retry", "ready", "retry due")])
    part = text_of(staff, found.group(1).replace("&amp;", "&"), headers={"HX-Request": "true"})
    assert "1 newer event" in part
    assert "retry due" not in part
    assert "retry due" in text_of(staff, f"/runs/{run.id}?tab=events")


def test_a_long_run_is_paged(staff: Client) -> None:
    history = History()
    tasks = [TaskFacts(f"t-{n:03d}", TaskState.READY) for n in range(130)]
    run = history.run(history.workflow("index", tasks), RunState.RUNNING, tasks)
    first = text_of(staff, f"/runs/{run.id}")
    assert "t-099" in first
    assert "t-100" not in first
    assert "100 of 130" in re.sub(r"\s+", " ", first)
    found = re.search(r'href="(\?at=[^"]+)" rel="next"', first)
    assert found is not None
    second = text_of(staff, f"/runs/{run.id}{found.group(1)}")
    assert "t-129" in second
    assert 'rel="prev"' in second
    assert 'rel="next"' not in second


def test_the_text_of_a_task_is_never_markup(staff: Client) -> None:
    history = History()
    tasks = [TaskFacts("only", TaskState.RUNNING, attempts=("running",), progress="<b>half</b>")]
    run = history.run(history.workflow("index", tasks), RunState.RUNNING, tasks, created_by="<i>who</i>")
    for address in (f"/runs/{run.id}", f"/runs/{run.id}/tasks/only", "/runs"):
        markup = text_of(staff, address)
        assert "<b>half" not in markup
        assert "<i>who" not in markup


@pytest.mark.parametrize("size", [1, 60])
def test_pages_cost_the_same_for_few_and_many_rows(
    staff: Client, size: int, django_assert_num_queries: Any
) -> None:
    history = History()
    tasks = [TaskFacts(f"t-{n}", TaskState.READY) for n in range(size)]
    tasks.append(TaskFacts("late", TaskState.WAITING_RETRY, attempts=("failed",)))
    version = history.workflow("index", tasks, versions=3)
    for minute in range(size if size == 1 else 8):
        run = history.run(version, RunState.RUNNING, tasks, age=timedelta(minutes=minute + 1))
    # each: session, user, tenant; a whole page also reads the leader for the foot of the navigation
    whole, part = 4, 3
    for address, reads in {
        "/runs": 1,
        f"/runs/{run.id}": 3,
        f"/runs/{run.id}?tab=events": 3,
        f"/runs/{run.id}?tab=params": 3,
        f"/runs/{run.id}?tab=attempts": 3,
        f"/runs/{run.id}/tasks/late": 5,
        "/workflows": 1,
        "/workflows/index": 4,
        "/workflows/index/versions/3": 1,
    }.items():
        with django_assert_num_queries(whole + reads):
            staff.get(address)
    with django_assert_num_queries(part + 3):
        staff.get(f"/runs/{run.id}", headers={"HX-Request": "true"})


class TestCancel:
    """The page asks, the operation decides, and the answer is told in words."""

    @pytest.fixture
    def run(self) -> Run:
        history, tasks = History(), handbook_tasks()
        return history.run(history.workflow("index", tasks), RunState.RUNNING, tasks)

    def answer(
        self, monkeypatch: pytest.MonkeyPatch, answer: CancelAnswer | Exception
    ) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def stand_in(**facts: Any) -> list[CancelAnswer]:
            calls.append(facts)
            if isinstance(answer, Exception):
                raise answer
            return [answer]

        monkeypatch.setattr(views, "request_cancel", stand_in)
        return calls

    @pytest.mark.parametrize(
        ("state", "requested", "words"),
        [
            (RunState.RUNNING, True, "Cancel asked for."),
            (RunState.RUNNING, False, "asked for before"),
            (RunState.SUCCEEDED, False, "the run has succeeded"),
        ],
    )
    def test_the_outcome_is_told(
        self,
        staff: Client,
        run: Run,
        monkeypatch: pytest.MonkeyPatch,
        state: RunState,
        requested: bool,
        words: str,
    ) -> None:
        calls = self.answer(monkeypatch, CancelAnswer(UUID(str(run.id)), state, None, requested))
        answer = staff.post(f"/runs/{run.id}/cancel", follow=True)
        assert answer.redirect_chain == [(f"/runs/{run.id}", 302)]
        assert words in answer.content.decode()
        assert calls == [{"run_ids": [ANY], "tenant_id": run.tenant_id, "actor": "user:operator-1"}]
        assert str(calls[0]["run_ids"][0]) == str(run.id)

    def test_a_run_of_nobody_is_a_404(self, staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer(monkeypatch, RunNotFound())
        assert staff.post(f"/runs/{NOBODY}/cancel").status_code == 404

    def test_a_get_changes_nothing(self, staff: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = self.answer(monkeypatch, RunNotFound())
        assert "Cancel run" in text_of(staff, f"/runs/{run.id}/cancel")
        assert calls == []

    def test_a_post_without_the_token_is_refused(self, run: Run) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(User.objects.create_user("operator-2", is_staff=True))
        answer = strict.post(f"/runs/{run.id}/cancel")
        assert answer.status_code == 403
        assert "This form has expired" in answer.content.decode()

    def test_a_run_being_canceled_says_so_and_offers_no_second_cancel(self, staff: Client, run: Run) -> None:
        change(run, cancel_requested_at=run.created_at)
        markup = text_of(staff, f"/runs/{run.id}")
        assert "what runs is being stopped" in markup
        assert 'id="cancel"' not in markup
