"""What the tables say of a run, in the shape that tests compare."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from dispatch.models import Dispatch, Worker
from workflows.models import Attempt, ReadyQueue, Run, StateEvent, Task


def the_run(run_id: UUID) -> Run:
    """The run as it is stored now."""
    return Run.objects.get(pk=run_id)


def the_worker(worker_id: UUID) -> Worker:
    """The worker as it is stored now."""
    return Worker.objects.get(pk=worker_id)


def the_task(run_id: UUID, key: str) -> Task:
    """One task as it is stored now."""
    return Task.objects.get(run=run_id, key=key)


def the_dispatch(dispatch_id: UUID) -> Dispatch:
    """One dispatch as it is stored now."""
    return Dispatch.objects.get(pk=dispatch_id)


def task_states(run_id: UUID) -> dict[str, str]:
    """The state of each task by key."""
    return dict(Task.objects.filter(run=run_id).order_by("position").values_list("key", "state"))


def attempt_rows(run_id: UUID) -> list[tuple[str, int, str]]:
    """(task key, number, state) of every attempt, by task and number."""
    rows = Attempt.objects.filter(run=run_id).order_by("task__position", "number")
    return list(rows.values_list("task__key", "number", "state"))


def dispatch_states(run_id: UUID) -> list[str]:
    """The states of a run's dispatches in the order of service."""
    return list(Dispatch.objects.filter(run=run_id).order_by("seq").values_list("state", flat=True))


def ready_rows(run_id: UUID) -> list[tuple[int, bool]]:
    """(ready, open) of each class of a run."""
    rows = ReadyQueue.objects.filter(run=run_id).order_by("task_class")
    return list(rows.values_list("ready", "open"))


def moves_of(run_id: UUID) -> list[tuple[str, str, str, str]]:
    """(entity, key, from, to) of every event, in order; asserts that seq has no gap."""
    rows = list(StateEvent.objects.filter(run=run_id).order_by("seq").values_list())
    events = StateEvent.objects.filter(run=run_id).order_by("seq")
    assert [event.seq for event in events] == list(range(1, len(rows) + 1))
    assert the_run(run_id).event_seq == len(rows)
    return [(event.entity, event.key, event.from_state, event.to_state) for event in events]


def everything_of(run_id: UUID) -> dict[str, list[Any]]:
    """Every row of a run, to prove that a refused request changed nothing."""
    tables = {"run": Run.objects.filter(pk=run_id)}
    rows: dict[str, list[Any]] = {"run": list(tables["run"].values())}
    for model in (Task, Attempt, StateEvent, ReadyQueue, Dispatch):
        rows[model.__name__] = list(model.objects.filter(run=run_id).order_by("pk").values())
    return rows
