"""Reads of the run history: what they return, whose they show, and what they cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from platform_site.access.models import Tenant
from tests.browser.history import History, TaskFacts, busy_platform, change, handbook_tasks
from workflows import queries
from workflows.kernel.states import AttemptState, RunState, TaskState
from workflows.models import Run
from workflows.queries.cursors import Cursor, CursorInvalid, decode

pytestmark = pytest.mark.django_db

ONE = [TaskFacts("only", TaskState.SUCCEEDED, attempts=("succeeded",))]
NOBODY = UUID(int=7)


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def stranger() -> int:
    """A tenant that owns nothing."""
    return Tenant.objects.create(slug="stranger", name="Stranger").id


def some_runs(history: History, number: int) -> list[UUID]:
    """Ids of `number` runs, newest first."""
    version = history.workflow("index", ONE)
    made = [
        history.run(version, RunState.SUCCEEDED, ONE, age=timedelta(minutes=10 + minute)).id
        for minute in range(number)
    ]
    return [UUID(str(identity)) for identity in made]


def test_pages_of_runs_follow_each_other_both_ways(history: History) -> None:
    ids = some_runs(history, 7)
    tenant = history.tenant.id
    first = queries.list_runs(tenant_id=tenant, limit=3)
    second = queries.list_runs(tenant_id=tenant, limit=3, cursor=first.older)
    third = queries.list_runs(tenant_id=tenant, limit=3, cursor=second.older)
    assert [row.id for page in (first, second, third) for row in page.rows] == ids
    assert (first.newer, third.older) == (None, None)
    back = queries.list_runs(tenant_id=tenant, limit=3, cursor=third.newer)
    assert back.rows == second.rows
    assert queries.list_runs(tenant_id=tenant, limit=3, cursor=back.newer).rows == first.rows


def test_runs_made_at_one_instant_are_all_listed_once(history: History) -> None:
    ids = some_runs(history, 5)
    moment = Run.objects.get(id=ids[0]).created_at
    for identity in ids:
        change(Run.objects.get(id=identity), created_at=moment)
    seen, cursor = [], None
    while True:
        page = queries.list_runs(tenant_id=history.tenant.id, limit=2, cursor=cursor)
        seen += [row.id for row in page.rows]
        cursor = page.older
        if cursor is None:
            break
    assert seen == sorted(ids, reverse=True)


def test_a_page_read_again_stays_where_it_is_and_says_there_is_newer(history: History) -> None:
    ids = some_runs(history, 4)
    page = queries.list_runs(tenant_id=history.tenant.id, limit=3)
    again = queries.list_runs(tenant_id=history.tenant.id, limit=3, cursor=page.here)
    assert (again.rows, again.newer) == (page.rows, None)
    version = Run.objects.get(id=ids[0]).version
    history.run(version, RunState.SUCCEEDED, ONE, age=timedelta(minutes=1))
    later = queries.list_runs(tenant_id=history.tenant.id, limit=3, cursor=page.here)
    assert [row.id for row in later.rows] == ids[:3]
    assert later.newer is not None


def test_runs_are_narrowed_by_state_workflow_and_labels(history: History) -> None:
    busy_platform()

    def names(**filters: Any) -> list[tuple[str, str]]:
        found = queries.list_runs(tenant_id=history.tenant.id, filters=queries.RunFilters(**filters))
        return [(row.workflow, row.state.value) for row in found.rows]

    assert names(states=frozenset({RunState.FAILED})) == [("nightly-quality", "failed")]
    assert names(workflow="invoice-extract") == [("invoice-extract", "running")]
    assert names(workflow="nobody") == []
    assert names(labels={"team": "docs"}) == [("index-handbook", "running")]
    assert names(labels={"team": "docs", "zone": "b"}) == []
    open_ones = names(states=frozenset({RunState.PENDING, RunState.RUNNING}))
    assert open_ones == [
        ("nightly-quality", "pending"),
        ("index-handbook", "running"),
        ("invoice-extract", "running"),
    ]


def test_nothing_is_shown_to_another_tenant(stranger: int) -> None:
    run_id = busy_platform()
    where: dict[str, Any] = {"tenant_id": stranger, "run_id": run_id}
    assert queries.list_runs(tenant_id=stranger).rows == ()
    assert queries.run_detail(**where) is None
    assert queries.run_params(**where) is None
    assert queries.run_tasks(**where).rows == ()
    assert queries.next_retries(**where) == ()
    assert queries.run_attempts(**where) == ()
    assert queries.task_detail(**where, key="clean-c") is None
    assert queries.run_events(**where).rows == ()
    assert queries.list_workflows(tenant_id=stranger).rows == ()
    assert queries.workflow_detail(tenant_id=stranger, name="index-handbook") is None
    assert queries.workflow_versions(tenant_id=stranger, name="index-handbook").rows == ()
    assert queries.version_definition(tenant_id=stranger, name="index-handbook", number=1) is None
    overview = queries.runs_overview(tenant_id=stranger, now=History().now)
    assert (overview.recent, overview.ready_tasks) == ((), 0)


def test_what_is_not_there_is_none(history: History) -> None:
    assert queries.run_detail(tenant_id=history.tenant.id, run_id=NOBODY) is None
    assert queries.task_detail(tenant_id=history.tenant.id, run_id=NOBODY, key="a") is None


def test_a_run_counts_its_tasks(history: History) -> None:
    run = queries.run_detail(tenant_id=history.tenant.id, run_id=busy_platform())
    assert run is not None
    assert sum(run.counts.values()) == run.tasks_total
    assert run.tasks_done == run.counts[TaskState.SUCCEEDED] + 2
    assert (run.workflow, run.version, run.event_seq) == ("index-handbook", 7, 9)
    assert not run.terminal
    assert not run.canceling


def test_pages_of_tasks_follow_each_other_both_ways(history: History) -> None:
    where: dict[str, Any] = {"tenant_id": history.tenant.id, "run_id": busy_platform(), "limit": 15}
    first = queries.run_tasks(**where)
    second = queries.run_tasks(**where, cursor=first.next)
    third = queries.run_tasks(**where, cursor=second.next)
    positions = [row.position for page in (first, second, third) for row in page.rows]
    assert positions == list(range(len(handbook_tasks())))
    assert (first.previous, third.next) == (None, None)
    assert queries.run_tasks(**where, cursor=third.previous).rows == second.rows
    assert queries.run_tasks(**where, cursor=second.previous).previous is None


def test_tasks_are_narrowed_by_state_and_name_their_latest_worker(history: History) -> None:
    where: dict[str, Any] = {"tenant_id": history.tenant.id, "run_id": busy_platform()}
    (running,) = queries.run_tasks(**where, states=frozenset({TaskState.RUNNING})).rows
    assert (running.key, running.attempts, running.worker_name) == ("clean-c", 2, "worker-4")
    (queued,) = queries.run_tasks(**where, states=frozenset({TaskState.QUEUED})).rows
    assert queued.worker_name == ""


def test_a_task_comes_with_its_attempts_logs_definition_and_dependencies(history: History) -> None:
    task = queries.task_detail(tenant_id=history.tenant.id, run_id=busy_platform(), key="clean-c")
    assert task is not None
    assert [(attempt.number, attempt.state.value) for attempt in task.attempt_rows] == [
        (2, "running"),
        (1, "interrupted"),
    ]
    assert [line.attempt for line in task.logs] == [2, 2, 1, 1]
    assert '"action": "text.clean"' in task.definition
    assert [dependency.key for dependency in task.dependencies] == ["list", "read-00"]
    assert (task.dependency_count, task.max_attempts) == (2, 1)
    assert (task.output, task.output_bytes, task.output_cut) == (None, None, False)


def test_long_outputs_attempts_and_logs_are_cut_and_say_so(history: History) -> None:
    where: dict[str, Any] = {"tenant_id": history.tenant.id, "run_id": busy_platform()}
    done = queries.task_detail(**where, key="list", output_limit=5)
    assert done is not None
    assert (done.output, done.output_bytes, done.output_cut) == ('{"fil', 13, True)
    latest = queries.task_detail(**where, key="clean-c", attempt_limit=1)
    assert latest is not None
    assert (len(latest.attempt_rows), latest.more_attempts) == (1, True)
    assert {line.attempt for line in latest.logs} == {2}
    running = queries.task_detail(**where, key="clean-c", log_limit=3)
    assert running is not None
    assert (len(running.logs), running.more_logs) == (3, True)


def test_attempts_of_a_run_come_newest_first(history: History) -> None:
    where: dict[str, Any] = {"tenant_id": history.tenant.id, "run_id": busy_platform()}
    latest = queries.run_attempts(**where, limit=2)
    assert [(row.task_key, row.attempt.number) for row in latest] == [("clean-d", 2), ("clean-c", 2)]
    (lost,) = queries.run_attempts(**where, states=frozenset({AttemptState.INTERRUPTED}))
    assert (lost.task_key, lost.attempt.reason) == ("clean-c", "lease expired")


def test_events_are_read_both_ways(history: History) -> None:
    where: dict[str, Any] = {"tenant_id": history.tenant.id, "run_id": busy_platform()}
    latest = queries.run_events(**where, limit=4)
    assert ([event.seq for event in latest.rows], latest.more) == ([9, 8, 7, 6], True)
    earlier = queries.run_events(**where, before=6, limit=10)
    assert ([event.seq for event in earlier.rows], earlier.more) == ([5, 4, 3, 2, 1], False)
    onwards = queries.run_events(**where, after=7)
    assert [event.seq for event in onwards.rows] == [8, 9]
    interrupted = latest.rows[1]
    assert (interrupted.task_key, interrupted.attempt, interrupted.to_state) == (
        "clean-c",
        "1",
        "interrupted",
    )


def test_workflows_and_versions_are_paged(history: History) -> None:
    busy_platform()
    tenant = history.tenant.id
    first = queries.list_workflows(tenant_id=tenant, limit=2)
    rest = queries.list_workflows(tenant_id=tenant, limit=2, cursor=first.next)
    assert [row.name for row in (*first.rows, *rest.rows)] == [
        "index-handbook",
        "invoice-extract",
        "nightly-quality",
    ]
    assert rest.next is None
    assert (first.rows[0].latest_version, first.rows[0].last_run_state) == (7, RunState.RUNNING)
    newest = queries.workflow_versions(tenant_id=tenant, name="index-handbook", limit=5)
    assert ([row.number for row in newest.rows], newest.older) == ([7, 6, 5, 4, 3], 3)
    oldest = queries.workflow_versions(tenant_id=tenant, name="index-handbook", before=newest.older)
    assert ([row.number for row in oldest.rows], oldest.older) == ([2, 1], None)
    found = queries.version_definition(tenant_id=tenant, name="index-handbook", number=7)
    assert found is not None
    assert (len(found[0].digest), '"concurrency": 17' in found[1]) == (64, True)


def test_the_overview_finds_what_failed_and_what_stands_still(history: History) -> None:
    busy_platform()
    overview = queries.runs_overview(tenant_id=history.tenant.id, now=history.now)
    assert [run.workflow for run in overview.failed] == ["nightly-quality"]
    assert [run.workflow for run in overview.stalled] == ["invoice-extract"]
    assert [run.workflow for run in overview.approval_waits] == ["index-handbook"]
    assert (len(overview.recent), overview.ready_tasks) == (6, 2)


@pytest.mark.parametrize("size", [1, 40])
def test_reads_cost_the_same_for_few_and_many_rows(
    history: History, size: int, django_assert_num_queries: Any
) -> None:
    tasks = [TaskFacts(f"t-{n}", TaskState.SUCCEEDED, attempts=("succeeded",)) for n in range(size)]
    tasks.append(TaskFacts("late", TaskState.WAITING_RETRY, attempts=("failed",) * size, depends_on=("t-0",)))
    version = history.workflow("index", tasks, versions=size)
    for minute in range(size):
        run = history.run(version, RunState.RUNNING, tasks, age=timedelta(minutes=minute + 1))
    tenant, run_id = history.tenant.id, UUID(str(run.id))
    page = queries.list_runs(tenant_id=tenant)
    reads: list[tuple[int, Any]] = [
        (1, lambda: queries.list_runs(tenant_id=tenant)),
        (2, lambda: queries.list_runs(tenant_id=tenant, filters=queries.RunFilters(workflow="index"))),
        (2, lambda: queries.list_runs(tenant_id=tenant, cursor=page.here)),
        (1, lambda: queries.run_detail(tenant_id=tenant, run_id=run_id)),
        (1, lambda: queries.run_params(tenant_id=tenant, run_id=run_id)),
        (1, lambda: queries.run_tasks(tenant_id=tenant, run_id=run_id)),
        (1, lambda: queries.next_retries(tenant_id=tenant, run_id=run_id)),
        (1, lambda: queries.run_attempts(tenant_id=tenant, run_id=run_id)),
        (4, lambda: queries.task_detail(tenant_id=tenant, run_id=run_id, key="late")),
        (4, lambda: queries.task_detail(tenant_id=tenant, run_id=run_id, key="t-0")),
        (1, lambda: queries.run_events(tenant_id=tenant, run_id=run_id)),
        (1, lambda: queries.list_workflows(tenant_id=tenant)),
        (1, lambda: queries.workflow_detail(tenant_id=tenant, name="index")),
        (1, lambda: queries.workflow_versions(tenant_id=tenant, name="index")),
        (1, lambda: queries.version_definition(tenant_id=tenant, name="index", number=1)),
        (5, lambda: queries.runs_overview(tenant_id=tenant, now=history.now)),
    ]
    for statements, read in reads:
        with django_assert_num_queries(statements):
            read()


def test_a_page_deep_in_the_list_starts_at_its_place_in_the_index(history: History) -> None:
    """An OR alone would make the index begin at the newest run and throw rows away."""
    ids = some_runs(history, 3)
    row = Run.objects.get(id=ids[1])
    place = Cursor("older", (row.created_at.isoformat(), str(row.id)))
    from workflows.queries.runs import _beyond, _newest_first  # the pieces of the statement, to be explained

    rows = _newest_first(Run.objects.filter(tenant_id=history.tenant.id).filter(_beyond(place)))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    plan = rows.values("id")[:2].explain()
    assert "run_newest" in plan
    condition = next(line for line in plan.splitlines() if "Index Cond" in line)
    assert "created_at <=" in condition


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!!",
        "e30",
        "W10",
        "WyJzaWRld2F5cyIsICJhIiwgImIiXQ",
        "WyJvbGRlciIsIDEsIDJd",
        "WyJvbGRlciIsICJhIiwgImIiXQ",
        "A" * 600,
    ],
)
def test_a_made_up_cursor_is_refused(history: History, text: str) -> None:
    with pytest.raises(CursorInvalid):
        queries.list_runs(tenant_id=history.tenant.id, cursor=text)


def test_a_cursor_comes_back_as_it_went() -> None:
    cursor = Cursor("from", ("2026-03-01T12:00:00+00:00", "x"))
    assert decode(cursor.encode(), shape=(str, str)) == cursor
    with pytest.raises(CursorInvalid, match="another list"):
        decode(cursor.encode(), shape=(int, int))
