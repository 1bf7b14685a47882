"""Tasks of a run in the order of its definition, and one task with its attempts and logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Func, IntegerField, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Left

from workflows.kernel.states import AttemptState, TaskState
from workflows.models import Attempt, AttemptLog, Task
from workflows.queries.cursors import Cursor, decode

MAX_PAGE = 500
DEPENDENCIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task as lists show it. `worker_name` is that of its latest attempt, empty before the first."""

    id: int
    key: str
    position: int
    map_index: int | None
    state: TaskState
    executor_kind: str
    action: str
    attempts: int
    attempts_used: int
    unmet_dependencies: int
    ready_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error_code: str
    error_message: str
    reason: str
    progress_percent: int | None
    progress_text: str
    worker_name: str


@dataclass(frozen=True, slots=True)
class TaskPage:
    """In the definition's order. `next` and `previous` are cursors, None where there is nothing."""

    rows: tuple[TaskRow, ...]
    next: str | None
    previous: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One try of a task. `generation` is the fencing token its worker passed on."""

    number: int
    state: AttemptState
    worker_id: UUID | None
    worker_name: str
    dispatch_id: UUID | None
    generation: int | None
    started_at: datetime
    deadline: datetime
    finished_at: datetime | None
    error_code: str
    error_message: str
    reason: str
    log_truncated: bool


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """An attempt with the key of its task."""

    task_key: str
    attempt: AttemptRow


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that an action logged in attempt number `attempt`."""

    id: int
    attempt: int
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Dependency:
    """A task that another one waits for."""

    key: str
    state: TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail(TaskRow):
    """A task in full. `definition` is its part of the version, as JSON text; `output` may be cut off.

    `output_bytes` is the size of the whole output, None while there is none. Attempts and logs come newest
    first, bounded; `more_attempts` and `more_logs` say that there are older ones. `dependencies` holds up to
    DEPENDENCIES of `dependency_count`, in the definition's order.
    """

    definition: str
    max_attempts: int
    dependencies: tuple[Dependency, ...]
    dependency_count: int
    requires: Mapping[str, str]
    output: str | None
    output_bytes: int | None
    attempt_rows: tuple[AttemptRow, ...]
    more_attempts: bool
    logs: tuple[LogLine, ...]
    more_logs: bool

    @property
    def output_cut(self) -> bool:
        return self.output is not None and len(self.output.encode()) < (self.output_bytes or 0)


_COLUMNS = (
    "id",
    "key",
    "position",
    "map_index",
    "state",
    "executor_kind",
    "action",
    "attempts",
    "attempts_used",
    "unmet_dependencies",
    "ready_at",
    "started_at",
    "finished_at",
    "error_code",
    "error_message",
    "reason",
    "progress_percent",
    "progress_text",
    "worker_name",
)
_ATTEMPT_COLUMNS = tuple(AttemptRow.__slots__)


def _task_rows(tasks: QuerySet[Task]) -> QuerySet[Task, dict[str, Any]]:
    latest = Attempt.objects.filter(run_id=OuterRef("run_id"), task_id=OuterRef("id")).order_by("-number")
    rows: QuerySet[Task, dict[str, Any]] = tasks.annotate(
        worker_name=Subquery(latest.values("worker_name")[:1])
    ).values(*_COLUMNS)
    return rows


def _facts(values: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: values[name] for name in _COLUMNS}
    facts["state"] = TaskState(values["state"])
    facts["worker_name"] = values["worker_name"] or ""
    return facts


def run_tasks(
    *,
    tenant_id: int,
    run_id: UUID,
    states: frozenset[TaskState] = frozenset(),
    cursor: str | None = None,
    limit: int = 100,
) -> TaskPage:
    """A page of a run's tasks; empty for a run that is not there. Raises CursorInvalid. One statement.

    The order is position, then identity, which for the items of a mapped task is the order they were made in.
    """
    limit = max(1, min(limit, MAX_PAGE))
    place = None if cursor is None else decode(cursor, shape=(int, int))
    tasks = Task.objects.filter(run_id=run_id, run__tenant_id=tenant_id)
    if states:
        tasks = tasks.filter(state__in=sorted(state.value for state in states))
    if place is not None:
        tasks = tasks.filter(_side(place))
    backwards = place is not None and place.direction == "newer"
    order = ("-position", "-id") if backwards else ("position", "id")
    found = [TaskRow(**_facts(values)) for values in _task_rows(tasks.order_by(*order))[: limit + 1]]
    more, rows = len(found) > limit, found[:limit]
    if backwards:
        rows.reverse()
    if not rows:
        return TaskPage((), None, None)
    before = more if backwards else place is not None and place.direction == "older"
    after = more or backwards
    first, last = rows[0], rows[-1]
    return TaskPage(
        tuple(rows),
        next=Cursor("older", (last.position, last.id)).encode() if after else None,
        previous=Cursor("newer", (first.position, first.id)).encode() if before else None,
    )


def _side(place: Cursor) -> Q:
    position, identity = place.key
    if place.direction == "newer":
        return Q(position__lte=position) & (Q(position__lt=position) | Q(id__lt=identity))
    return Q(position__gte=position) & (Q(position__gt=position) | Q(id__gt=identity))


def next_retries(*, tenant_id: int, run_id: UUID, limit: int = 3) -> tuple[TaskRow, ...]:
    """The tasks of a run whose retry is due first. One statement."""
    waiting = Task.objects.filter(run_id=run_id, run__tenant_id=tenant_id, state=TaskState.WAITING_RETRY)
    return tuple(
        TaskRow(**_facts(values)) for values in _task_rows(waiting.order_by("ready_at", "id"))[:limit]
    )


def task_detail(
    *,
    tenant_id: int,
    run_id: UUID,
    key: str,
    output_limit: int = 65_536,
    attempt_limit: int = 50,
    log_limit: int = 200,
) -> TaskDetail | None:
    """One task with its latest attempts and log lines; None when it is not there. Four statements.

    `output_limit` counts characters. The definition's part comes out of the stored text by the database, so
    that the page of one task does not carry ten thousand others.
    """
    tasks = Task.objects.filter(run_id=run_id, run__tenant_id=tenant_id, key=key)
    found = _in_full(_task_rows(tasks), output_limit).first()
    if found is None:
        return None
    definition = found["definition"] or "{}"
    parts = json.loads(definition, parse_int=str)  # as text: an input may hold integers of any length
    wanted = list(parts.get("depends_on", ()))
    tries, more_attempts = _attempts(run_id, found["id"], attempt_limit)
    logs, more_logs = _logs(tries, log_limit)
    return TaskDetail(
        **_facts(found),
        definition=definition,
        max_attempts=max(int(parts.get("retry", {}).get("max_attempts", 1)), 1),
        dependencies=_dependencies(run_id, wanted[:DEPENDENCIES]),
        dependency_count=len(wanted),
        requires=found["requires"],
        output=found["output_start"],
        output_bytes=found["output_size"],
        attempt_rows=tuple(tries.values()),
        more_attempts=more_attempts,
        logs=logs,
        more_logs=more_logs,
    )


def _in_full(tasks: QuerySet[Task, dict[str, Any]], output_limit: int) -> QuerySet[Task, dict[str, Any]]:
    return tasks.annotate(
        definition=_definition_part(),
        requires=F("task_class__requires"),
        output_start=Left("output", output_limit),
        output_size=Func(F("output"), function="OCTET_LENGTH", output_field=IntegerField()),
    )


def _definition_part() -> Func:
    """`definition -> 'tasks' -> position`, as `json`: `jsonb` would rewrite numbers."""
    return Func(
        F("run__version__definition"),
        F("position"),
        template="(%(expressions)s)::text",
        arg_joiner="::json -> 'tasks' -> ",
        output_field=TextField(),
    )


def _dependencies(run_id: UUID, keys: list[str]) -> tuple[Dependency, ...]:
    """Read even when there are none: the number of statements stays the same."""
    found = Task.objects.filter(run_id=run_id, key__in=[*keys, ""]).order_by("position", "id")
    return tuple(Dependency(key, TaskState(state)) for key, state in found.values_list("key", "state"))


def run_attempts(
    *, tenant_id: int, run_id: UUID, states: frozenset[AttemptState] = frozenset(), limit: int = 100
) -> tuple[RunAttempt, ...]:
    """The latest attempts of a run, newest first, at most `limit`. One statement.

    Not ordered by the key alone: its index would tempt the planner to walk back through every run's attempts.
    """
    attempts = Attempt.objects.filter(run_id=run_id, run__tenant_id=tenant_id)
    if states:
        attempts = attempts.filter(state__in=sorted(state.value for state in states))
    found = attempts.order_by("-started_at", "-id").values("task__key", *_ATTEMPT_COLUMNS)[:limit]
    return tuple(RunAttempt(values.pop("task__key"), _attempt(values)) for values in found)


def _attempt(values: dict[str, Any]) -> AttemptRow:
    return AttemptRow(**{**values, "state": AttemptState(values["state"])})


def _attempts(run_id: UUID, task_id: int, limit: int) -> tuple[dict[int, AttemptRow], bool]:
    """The latest attempts by identity, newest first, and whether there are older ones."""
    found = list(
        Attempt.objects.filter(run_id=run_id, task_id=task_id)
        .order_by("-number")
        .values("id", *_ATTEMPT_COLUMNS)[: limit + 1]
    )
    return {values.pop("id"): _attempt(values) for values in found[:limit]}, len(found) > limit


def _logs(tries: Mapping[int, AttemptRow], limit: int) -> tuple[tuple[LogLine, ...], bool]:
    """The latest lines of these attempts, newest first. By their identities, which is how the index has them."""
    lines = (
        AttemptLog.objects.filter(attempt_id__in=[*tries, 0])  # 0 is none: asked even without attempts
        .order_by("-attempt_id", "-id")
        .values_list("id", "attempt_id", "at", "level", "text")[: limit + 1]
    )
    found = [
        LogLine(line, tries[attempt].number, at, level, text) for line, attempt, at, level, text in lines
    ]
    return tuple(found[:limit]), len(found) > limit
