"""The checks, by name. A check that is not here is not run; one without a test fails the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any
from uuid import UUID

from platform_site.statements import Statements
from workflows.kernel.definition import CompiledWorkflow, load_compiled
from workflows.kernel.progress import reconcile
from workflows.kernel.states import TaskState

sql = Statements("platform_site.consistency.sql")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``run_id`` None: it is not about a run. ``subject`` is a task key, a worker, a class."""

    check: str
    run_id: UUID | None
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Check:
    """What is compared. ``find`` takes the run ids of a batch and yields (run id, subject, message)."""

    name: str
    claims: str
    find: Callable[[Sequence[UUID]], Iterator[tuple[UUID | None, str, str]]]

    def findings(self, run_ids: Sequence[UUID] = ()) -> list[Finding]:
        """What this check finds in these runs, within the open snapshot."""
        return [Finding(self.name, *found) for found in self.find(run_ids)]


def _statement(name: str, claims: str, **params: Any) -> Check:
    def find(run_ids: Sequence[UUID]) -> Iterator[tuple[UUID | None, str, str]]:
        scope = {"run_ids": list(run_ids)} if "%(run_ids)s" in sql.texts[name] else {}
        yield from sql.rows(name, **scope, **params)

    return Check(name, claims, find)


def _unmet(run_ids: Sequence[UUID]) -> Iterator[tuple[UUID | None, str, str]]:
    for run_id, rows, states, compiled in _graphs(run_ids):
        unmet = reconcile(compiled.graph, states).unmet
        for (_, _, key, position, state, stored), counted in zip(rows, unmet, strict=True):
            if state == TaskState.WAITING_DEPENDENCIES and stored != counted:
                yield (
                    run_id,
                    key,
                    f"{stored} unmet dependencies stored at position {position}, counted {counted}",
                )


def _order(run_ids: Sequence[UUID]) -> Iterator[tuple[UUID | None, str, str]]:
    for run_id, rows, states, compiled in _graphs(run_ids):
        del rows
        for problem in reconcile(compiled.graph, states).problems:
            yield run_id, problem.path, problem.message


_Rows = list[tuple[UUID, int, str, int, str, int]]


def _graphs(run_ids: Sequence[UUID]) -> Iterator[tuple[UUID, _Rows, list[TaskState], CompiledWorkflow]]:
    tasks: Any = sql.rows("_tasks", run_ids=list(run_ids))
    for run_id, group in groupby(tasks, key=lambda row: row[0]):
        rows: _Rows = list(group)
        yield run_id, rows, [TaskState(row[4]) for row in rows], _compiled(rows[0][1])


@lru_cache(maxsize=32)
def _compiled(version_id: int) -> CompiledWorkflow:
    [(text,)] = sql.rows("_definition", version_id=version_id)
    return load_compiled(text)


RUN_CHECKS: tuple[Check, ...] = (
    _statement("run_counters", "I12: the counters of a run are what its tasks say"),
    _statement("run_terminal", "I6: a run is terminal exactly when all its tasks are"),
    _statement("run_concurrency", "I7: queued and running tasks stay within the run's concurrency"),
    _statement("run_turn", "I12: a run's turn follows from its last dispatch, age and priority"),
    _statement("event_seq", "I4: events are numbered from 1 without a gap"),
    _statement("run_revision", "I12: the revision counts the changes that the events tell of"),
    _statement("last_event", "the last event of a task or run tells its state"),
    _statement("attempt_numbers", "I4: attempts are numbered from 1 without a gap"),
    _statement("attempts_used", "I11: the budget used is what its attempts used"),
    _statement("task_attempt", "a task runs exactly while its last attempt does"),
    _statement("task_dispatch", "queued means pending, running means leased, all else means nothing open"),
    _statement("one_open_dispatch", "I2: at most one open dispatch of a task"),
    _statement("lease_attempt", "a lease and its attempt name each other"),
    _statement("generations", "I8: the generation grows from lease to lease"),
    _statement("ready_queue", "I12: the ready queue is what the tasks say"),
    _statement("terminal_run_open", "nothing of a finished run is open"),
    Check("unmet_dependencies", "I12: a waiting task counts its unfinished dependencies", _unmet),
    Check(
        "dependency_order", "I5: a task starts only after its dependencies, never after a failed one", _order
    ),
)


def platform_checks(*, dispatch_limit: int) -> tuple[Check, ...]:
    """The checks that are not about single runs."""
    return (
        _statement("worker_leases", "I7: a worker's leases stay within its slots, a stopped one has none"),
        _statement(
            "dispatch_limit", "I7: open dispatches stay within the limit", dispatch_limit=dispatch_limit
        ),
    )
