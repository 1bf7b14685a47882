"""Why a run or a task waits, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.browser.history import History, busy_platform
from workflows import queries
from workflows.console.waiting import run_reasons, task_reason
from workflows.kernel.states import RunState, TaskState

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> queries.RunDetail:
    found = queries.run_detail(tenant_id=History().tenant.id, run_id=busy_platform())
    assert found is not None
    return found


def counts(**numbers: int) -> dict[TaskState, int]:
    return {state: numbers.get(state.value, 0) for state in TaskState}


def said(run: queries.RunDetail, retries: tuple[queries.TaskRow, ...] = ()) -> list[str]:
    return [f"{reason.subject} {reason.text}" for reason in run_reasons(run, retries, run.created_at)]


def test_a_finished_run_waits_for_nothing(run: queries.RunDetail) -> None:
    assert said(replace(run, state=RunState.SUCCEEDED)) == []


def test_a_run_at_work_waits_for_nothing(run: queries.RunDetail) -> None:
    assert said(replace(run, counts=counts(running=3))) == []


def test_ready_tasks_wait_for_the_coordinator_or_for_a_place(run: queries.RunDetail) -> None:
    free = replace(run, counts=counts(ready=5, running=1), concurrency=4)
    full = replace(run, counts=counts(ready=5, running=3, queued=1), concurrency=4)
    assert said(free) == ["5 tasks ready, until the coordinator queues them"]
    assert "5 tasks ready, but all 4 places of this run are taken" in said(full)


def test_a_cancel_comes_first(run: queries.RunDetail) -> None:
    asked = replace(run, cancel_requested_at=run.created_at - timedelta(seconds=12))
    assert said(asked)[0] == "canceling asked for 12s ago; what runs is being stopped"


def test_the_next_retries_are_named_and_the_rest_counted(run: queries.RunDetail) -> None:
    (task,) = queries.next_retries(tenant_id=History().tenant.id, run_id=run.id)
    due = replace(task, ready_at=run.created_at + timedelta(seconds=4))
    many = replace(run, counts=counts(waiting_retry=5))
    assert said(many, (due,)) == ["clean-d retries in 4.0s, as attempt 3", "4 more tasks retry later"]
    assert (
        said(many, (replace(task, ready_at=run.created_at),))[0]
        == "clean-d is due for its retry, as attempt 3"
    )


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("list", ""),
        ("clean-c", ""),
        ("clean-e", "The worker that claims it"),
        ("merge-0", "It starts when 1 more task before it succeeded."),
        ("publish", "The person who decides"),
    ],
)
def test_a_task_says_whom_it_waits_for(run: queries.RunDetail, key: str, words: str) -> None:
    task = queries.task_detail(tenant_id=History().tenant.id, run_id=UUID(str(run.id)), key=key)
    assert task is not None
    reason = task_reason(task, run.created_at)
    assert reason.startswith(words)
    assert bool(reason) == bool(words)
