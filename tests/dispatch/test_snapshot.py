"""The one measurement of the coordinator: what it counts, what it leaves out, what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dispatch.snapshot import Snapshot, take_snapshot
from observability.snapshot import SnapshotPublisher, read_snapshot
from tests.browser.history import History, TaskFacts
from workflows.kernel.states import RunState, TaskState
from workflows.models import Run, Task

pytestmark = pytest.mark.django_db

TASKS = [
    TaskFacts("held", TaskState.RUNNING, attempts=("running",)),
    TaskFacts("waits", TaskState.QUEUED),
    TaskFacts("waits-longer", TaskState.QUEUED),
    TaskFacts("ready", TaskState.READY),
    TaskFacts("done", TaskState.SUCCEEDED, output="{}"),
]


@pytest.fixture
def history() -> History:
    return History()


def _run(history: History) -> Run:
    return history.run(history.workflow("pages", TASKS), RunState.RUNNING, TASKS)


def _task(run: Run, key: str) -> Task:
    return Task.objects.get(run=run, key=key)


def test_an_empty_platform():
    snapshot = take_snapshot()
    assert snapshot.queue_depth == {"pending": 0, "leased": 0}
    assert snapshot.workers == {"active": 0, "draining": 0}
    assert (snapshot.free_slots, snapshot.active_leases, snapshot.oldest_pending_seconds) == (0, 0, 0.0)
    assert set(snapshot.tasks) == {state.value for state in TaskState}
    assert set(snapshot.tasks.values()) == {0}


def test_what_is_open_is_counted(history: History):
    run = _run(history)
    worker = history.worker("a", ["python"], 4)
    history.worker("b", ["python"], 3)
    history.lease(worker, _task(run, "held"))
    history.pending(_task(run, "waits"), age=timedelta(seconds=20))
    history.pending(_task(run, "waits-longer"), age=timedelta(seconds=90))
    history.leader()
    snapshot = take_snapshot()
    assert snapshot.queue_depth == {"pending": 2, "leased": 1}
    assert 90 <= snapshot.oldest_pending_seconds < 120
    assert snapshot.free_slots == 6
    assert snapshot.active_leases == 1
    assert snapshot.leader_epoch == 42
    counted = {state: count for state, count in snapshot.tasks.items() if count}
    assert counted == {"queued": 2, "running": 1, "ready": 1, "succeeded": 1}


def test_a_draining_worker_offers_nothing_and_one_that_left_is_not_counted(history: History):
    for number, state in enumerate(("active", "draining", "draining", "stopped", "offline")):
        history.worker(f"{state}-{number}", ["python"], 5, state)
    snapshot = take_snapshot()
    assert snapshot.workers == {"active": 1, "draining": 2}
    assert snapshot.free_slots == 5


def test_tasks_of_runs_that_ended_are_history(history: History):
    done = [TaskFacts("done", TaskState.SUCCEEDED, output="{}")]
    history.run(history.workflow("pages", done), RunState.SUCCEEDED, done)
    assert set(take_snapshot().tasks.values()) == {0}


def _bury_under_history(history: History, runs: int) -> None:
    """Copies of one run that ended: what a year of use looks like to the planner."""
    done = [TaskFacts("done", TaskState.SUCCEEDED, output="{}")]
    ended = history.run(history.workflow("old", done), RunState.SUCCEEDED, done)
    columns = [field.column for field in Run._meta.concrete_fields if field.column != "id"]
    listed = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO workflows_run (id, {listed})"  # noqa: S608 - names from the model
            f" SELECT gen_random_uuid(), {listed} FROM workflows_run, generate_series(1, %s) WHERE id = %s",
            [runs, ended.pk],
        )
        cursor.execute("ANALYZE workflows_run")


def test_it_is_one_statement_which_does_not_read_the_history(history: History):
    _run(history)
    _bury_under_history(history, 3_000)
    with CaptureQueriesContext(connection) as queries:
        take_snapshot()
    assert len(queries) == 1
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "run_by_state_newest" in plan, plan
    assert "Seq Scan on workflows_run" not in plan, plan


def test_the_instruments_take_it_by_shape():
    snapshot: Snapshot = take_snapshot()
    SnapshotPublisher().publish(snapshot)
    reading = read_snapshot()
    assert reading is not None
    assert reading.data["queue_depth"] == {"pending": 0, "leased": 0}
