"""Each check of the consistency command sees exactly the fault that it is for, and a sound system is clean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from dispatch.operations.reap import reap
from platform_site.consistency import examination
from platform_site.consistency.checks import RUN_CHECKS, platform_checks
from platform_site.consistency.examination import Report, examine
from platform_site.statements import Statements
from tests.support.aging import control_plane_there, let_leases_expire
from tests.support.platform import OpenFence, a_run, a_task, a_worker, queue_all
from tests.support.races import rival

AGAIN = {"max_attempts": 3, "interval_ms": 60_000}


@contextmanager
def _no_snapshot() -> Iterator[None]:
    """Under the rollback fixture the test's own transaction is the snapshot."""
    yield


def _examined(*, dispatch_limit: int = 10_000) -> Report:
    return examine(dispatch_limit=dispatch_limit, snapshot=_no_snapshot)


@dataclass(frozen=True)
class World:
    """One run that has some of everything under way, and one that has finished badly."""

    open: UUID
    done: UUID


@pytest.fixture
def world() -> World:
    control_plane_there()
    worker = a_worker(slots=4, kinds=["mock"])
    tasks = [a_task("done"), a_task("retry", retry=AGAIN), a_task("runs", "done"), a_task("queued")]
    run_id = a_run([*tasks, a_task("ready"), a_task("waits", "runs", "done")], concurrency=2)
    queue_all()
    first = {lease.task_key: lease for lease in worker.claim(2).leases}
    worker.complete([first["done"]])
    worker.complete([first["retry"]], kind="temporary_failure", error_code="busy")
    queue_all()
    second = {lease.task_key: lease for lease in worker.claim(2).leases}
    worker.release(second["runs"])
    worker.release(second["queued"])
    queue_all()
    worker.claim(1)
    other = a_worker(slots=4, kinds=["python"])
    python = {"executor": "python", "action": "x"}
    finished = [a_task("good", **python), a_task("bad", **python), a_task("skipped", "bad", **python)]
    lost = a_run(finished, name="finished")
    queue_all()
    leases = {lease.task_key: lease for lease in other.claim(3).leases}
    other.complete([leases["good"]])
    let_leases_expire([leases["bad"]])
    assert reap(fence=OpenFence()) == 1
    return World(run_id, lost)


# What is corrupted, and what must be found: (check, run or None, subject). Statements know %(open)s and %(done)s.
FAULTS: dict[str, tuple[str, set[tuple[str, str | None, str]]]] = {
    "run_counters": (
        (
            "UPDATE workflows_run SET tasks_skipped = tasks_skipped + 1, tasks_succeeded = tasks_succeeded - 1"
            " WHERE id = %(done)s"
        ),
        {("run_counters", "done", "run")},
    ),
    "run_terminal": (
        (
            "UPDATE workflows_run SET state = 'succeeded' WHERE id = %(done)s;"
            "UPDATE workflows_stateevent SET to_state = 'succeeded' WHERE run_id = %(done)s AND to_state = 'failed'"
            " AND entity = 'run'"
        ),
        {("run_terminal", "done", "run")},
    ),
    "run_concurrency": (
        "UPDATE workflows_run SET concurrency = 1 WHERE id = %(open)s",
        {("run_concurrency", "open", "run")},
    ),
    "run_turn": (
        "UPDATE workflows_run SET turn_at = turn_at + interval '1 hour' WHERE id = %(done)s",
        {("run_turn", "done", "run")},
    ),
    "event_seq": (
        (
            "UPDATE workflows_stateevent SET seq = seq + 100 WHERE run_id = %(done)s"
            " AND seq = (SELECT max(seq) FROM workflows_stateevent WHERE run_id = %(done)s)"
        ),
        {("event_seq", "done", "run")},
    ),
    "run_revision": (
        "UPDATE workflows_run SET revision = revision + 1 WHERE id = %(done)s",
        {("run_revision", "done", "run")},
    ),
    "last_event": (
        (
            "UPDATE workflows_stateevent SET to_state = 'canceled' WHERE run_id = %(done)s AND entity = 'task'"
            " AND key = 'skipped'"
        ),
        {("last_event", "done", "skipped")},
    ),
    "attempt_numbers": (
        "UPDATE workflows_attempt SET number = 3 WHERE run_id = %(done)s AND state = 'succeeded'",
        {("attempt_numbers", "done", "good")},
    ),
    "attempts_used": (
        "UPDATE workflows_task SET attempts_used = 0 WHERE run_id = %(done)s AND key = 'bad'",
        {("attempts_used", "done", "bad")},
    ),
    "task_attempt": (
        (
            "UPDATE workflows_attempt SET state = 'succeeded', finished_at = now()"
            " WHERE run_id = %(open)s AND state = 'running'"
        ),
        {("task_attempt", "open", "runs")},
    ),
    "task_dispatch": (
        (
            "UPDATE dispatch_dispatch SET state = 'canceled', finished_at = now()"
            " WHERE run_id = %(open)s AND state = 'pending'"
        ),
        {("task_dispatch", "open", "queued")},
    ),
    "one_open_dispatch": (
        (
            "INSERT INTO dispatch_dispatch (id, run_id, task_id, task_class_id, state, created_at)"
            " SELECT gen_random_uuid(), run_id, task_id, task_class_id, 'pending', now() FROM dispatch_dispatch"
            " WHERE run_id = %(open)s AND state = 'pending'"
        ),
        {("one_open_dispatch", "open", "queued")},
    ),
    "lease_attempt": (
        (
            "UPDATE dispatch_dispatch SET attempt_deadline = attempt_deadline + interval '1 hour'"
            " WHERE run_id = %(open)s AND state = 'leased'"
        ),
        {("lease_attempt", "open", "runs")},
    ),
    "generations": (
        (
            "UPDATE dispatch_dispatch SET generation = generation + 1000000 WHERE run_id = %(open)s"
            " AND state = 'released' AND task_id ="
            " (SELECT id FROM workflows_task WHERE run_id = %(open)s AND key = 'runs')"
        ),
        {("generations", "open", "runs")},
    ),
    "ready_queue": (
        "UPDATE workflows_readyqueue SET ready = ready + 1 WHERE run_id = %(open)s",
        {("ready_queue", "open", "class")},
    ),
    "terminal_run_open": (
        "UPDATE dispatch_dispatch SET run_id = %(done)s, task_id = -1 WHERE run_id = %(open)s AND state = 'pending'",
        {("terminal_run_open", "done", "run"), ("task_dispatch", "open", "queued")},
    ),
    "unmet_dependencies": (
        "UPDATE workflows_task SET unmet_dependencies = 2 WHERE run_id = %(open)s AND key = 'waits'",
        {("unmet_dependencies", "open", "waits")},
    ),
    "dependency_order": (
        (
            "UPDATE workflows_task SET state = 'waiting_dependencies', finished_at = NULL WHERE run_id = %(done)s"
            " AND key = 'skipped'"
        ),
        {
            ("dependency_order", "done", "$.tasks[2]"),
            ("run_counters", "done", "run"),
            ("run_terminal", "done", "run"),
            ("last_event", "done", "skipped"),
        },
    ),
    "worker_leases": (
        "UPDATE dispatch_worker SET state = 'stopped', stopped_at = now()",
        {("worker_leases", None, "worker")},
    ),
    "dispatch_limit": ("", {("dispatch_limit", None, "platform")}),
}


def _corrupt(statement: str, world: World) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, name in (
            ("workflows_run", "run_concurrency_kept"),
            ("workflows_run", "run_terminal_iff_tasks_are"),
            ("dispatch_dispatch", "dispatch_lease_within_attempt"),
        ):
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        cursor.execute("DROP INDEX dispatch_open")
        for part in filter(None, statement.split(";")):
            cursor.execute(part, {"open": world.open, "done": world.done})


@pytest.mark.django_db
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen_by_its_check(name: str, world: World) -> None:
    assert _examined().findings == []
    statement, expected = FAULTS[name]
    _corrupt(statement, world)
    report = _examined(dispatch_limit=1 if name == "dispatch_limit" else 10_000)
    runs = {world.open: "open", world.done: "done", None: None}
    subjects = {"class", "worker"}
    found = {
        (one.check, runs[one.run_id], word if (word := one.subject.split()[0]) in subjects else one.subject)
        for one in report.findings
    }
    assert found == expected


def test_no_check_is_without_a_fault_that_proves_it() -> None:
    names = [check.name for check in (*RUN_CHECKS, *platform_checks(dispatch_limit=1))]
    assert len(names) == len(set(names))
    assert set(names) == set(FAULTS)
    assert all(name in {check for check, _, _ in expected} for name, (_, expected) in FAULTS.items())


def test_every_statement_belongs_to_a_check() -> None:
    statements = Statements("platform_site.consistency.sql").texts
    assert {name for name in statements if not name.startswith("_")} == set(FAULTS) - {
        "unmet_dependencies",
        "dependency_order",
    }


@pytest.mark.django_db
def test_findings_beyond_the_most_are_counted_as_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "MOST_FINDINGS", 1)
    _corrupt("UPDATE workflows_run SET revision = revision + 1", world)
    report = _examined()
    assert (len(report.findings), report.truncated) == (1, True)


@pytest.mark.django_db
def test_batches_are_bounded_by_runs_and_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        a_run([a_task("a"), a_task("b")], name=name)
    monkeypatch.setattr(examination, "BATCH_TASKS", 3)
    sizes = []
    real = examination._next_runs

    def counted(after: UUID) -> list[UUID]:
        run_ids = real(after)
        sizes.append(len(run_ids))
        return run_ids

    monkeypatch.setattr(examination, "_next_runs", counted)
    assert _examined().runs == 3
    assert sizes == [1, 1, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_the_command_answers_in_text_and_json_and_by_its_exit_code(world: World) -> None:
    out = StringIO()
    call_command("check_consistency", stdout=out)
    assert out.getvalue().rstrip().endswith("over 2 runs: clean.")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflows_run SET revision = revision + 1 WHERE id = %s", [world.done])
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_consistency", stdout=out)
    assert ended.value.code == 1
    assert f"run_revision: run {world.done} run: revision" in out.getvalue()
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_consistency", "--json", stdout=out)
    [finding] = json.loads(out.getvalue())["findings"]
    assert (finding["check"], finding["run_id"]) == ("run_revision", str(world.done))


@pytest.mark.django_db(transaction=True)
def test_a_batch_sees_one_moment_whatever_happens_meanwhile(world: World) -> None:
    """What commits between two statements of a batch would else look like a fault."""
    worker = a_worker()
    with examination.repeatable_read():
        [run_counters] = [check for check in RUN_CHECKS if check.name == "run_counters"]
        assert run_counters.findings([world.open]) == []
        with rival(lambda: worker.request_cancel(world.open)) as other:
            other.result()
        assert [finding for check in RUN_CHECKS for finding in check.findings([world.open])] == []
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT revision, cancel_requested_at FROM workflows_run WHERE id = %s", [world.open]
            )
            assert cursor.fetchone()[1] is None
