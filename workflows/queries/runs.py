"""Runs: the list, newest first, and one run with its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from workflows.kernel.states import RunState, TaskState
from workflows.models import COUNTED_STATES, Run, Workflow
from workflows.queries.cursors import Cursor, CursorInvalid, decode

MAX_PAGE = 200


@dataclass(frozen=True, slots=True)
class RunFilters:
    """What a list of runs is narrowed to; empty narrows nothing. Labels must all be there, equal."""

    states: frozenset[RunState] = frozenset()
    workflow: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as lists show it. `counts` has every task state."""

    id: UUID
    workflow: str
    version: int
    state: RunState
    priority: int
    labels: Mapping[str, str]
    tasks_total: int
    counts: Mapping[TaskState, int]
    cancel_requested_at: datetime | None
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    trigger: str

    @property
    def tasks_done(self) -> int:
        return sum(number for state, number in self.counts.items() if state.terminal)

    @property
    def terminal(self) -> bool:
        return self.state.terminal

    @property
    def canceling(self) -> bool:
        """Its cancel was asked for and has not been carried out."""
        return self.cancel_requested_at is not None and not self.state.terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail(RunRow):
    """One run in full, but for its params (`run_params`), which may be large."""

    revision: int
    event_seq: int
    concurrency: int
    last_dispatched_at: datetime | None
    traceparent: str
    parent_run_id: UUID | None
    parent_task: str | None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Newest first. `older` and `newer` are cursors, None where nothing is; `here` reads this page again."""

    rows: tuple[RunRow, ...]
    older: str | None
    newer: str | None
    here: str | None


_COLUMNS = (
    "id",
    "state",
    "priority",
    "labels",
    "tasks_total",
    *(f"tasks_{state}" for state in COUNTED_STATES),
    "cancel_requested_at",
    "created_at",
    "created_by",
    "started_at",
    "finished_at",
    "trigger",
    "workflow__name",
    "version__number",
)
_DETAIL_COLUMNS = (
    "revision",
    "event_seq",
    "concurrency",
    "last_dispatched_at",
    "traceparent",
    "parent_task__run_id",
    "parent_task__key",
)


def _facts(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": values["id"],
        "workflow": values["workflow__name"],
        "version": values["version__number"],
        "state": RunState(values["state"]),
        "priority": values["priority"],
        "labels": values["labels"],
        "tasks_total": values["tasks_total"],
        "counts": {state: values[f"tasks_{state.value}"] for state in TaskState},
        "cancel_requested_at": values["cancel_requested_at"],
        "created_at": values["created_at"],
        "created_by": values["created_by"],
        "started_at": values["started_at"],
        "finished_at": values["finished_at"],
        "trigger": values["trigger"],
    }


def run_rows(runs: QuerySet[Run], limit: int) -> list[RunRow]:
    """The first `limit` of `runs` as rows: one statement."""
    return [RunRow(**_facts(values)) for values in runs.values(*_COLUMNS)[:limit]]


def list_runs(
    *, tenant_id: int, filters: RunFilters | None = None, cursor: str | None = None, limit: int = 50
) -> RunPage:
    """A page of runs, newest first. Raises CursorInvalid.

    Statements: one, one more when narrowed to a workflow, one more for a `from` cursor (is there newer?).
    """
    runs = _narrowed(tenant_id, filters or RunFilters())
    if runs is None:
        return RunPage((), None, None, None)
    limit = max(1, min(limit, MAX_PAGE))
    place = None if cursor is None else decode(cursor, shape=(str, str))
    if place is not None and place.direction == "newer":
        return _newer_page(runs, place, limit)
    if place is None:
        rows, newer = run_rows(_newest_first(runs), limit + 1), False
    else:
        rows = run_rows(_newest_first(runs.filter(_beyond(place))), limit + 1)
        # Reading on from a row means that it, at least, is newer.
        newer = place.direction == "older" or runs.filter(_newer_than(place)).exists()
    return _page(rows[:limit], older=len(rows) > limit, newer=newer)


def _narrowed(tenant_id: int, filters: RunFilters) -> QuerySet[Run] | None:
    runs = Run.objects.filter(tenant_id=tenant_id)
    if filters.workflow:
        # By id, so that the index of a workflow's runs serves the order as well.
        workflow_id = (
            Workflow.objects.filter(tenant_id=tenant_id, name=filters.workflow)
            .values_list("id", flat=True)
            .first()
        )
        if workflow_id is None:
            return None
        runs = runs.filter(workflow_id=workflow_id)
    if len(filters.states) == 1:
        runs = runs.filter(state=next(iter(filters.states)).value)
    elif filters.states:
        runs = runs.filter(state__in=sorted(state.value for state in filters.states))
    if filters.labels:
        runs = runs.filter(labels__contains=dict(filters.labels))
    return runs


def _newest_first(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.order_by("-created_at", "-id")


def _newer_page(runs: QuerySet[Run], place: Cursor, limit: int) -> RunPage:
    rows = run_rows(runs.filter(_newer_than(place)).order_by("created_at", "id"), limit + 1)
    return _page(rows[:limit][::-1], older=True, newer=len(rows) > limit)


def _page(rows: list[RunRow], *, older: bool, newer: bool) -> RunPage:
    if not rows:
        return RunPage((), None, None, None)
    first, last = rows[0], rows[-1]
    return RunPage(
        tuple(rows),
        older=Cursor("older", _key(last)).encode() if older else None,
        newer=Cursor("newer", _key(first)).encode() if newer else None,
        here=Cursor("from", _key(first)).encode(),
    )


def _key(row: RunRow) -> tuple[str, str]:
    return row.created_at.isoformat(), str(row.id)


def _place(cursor: Cursor) -> tuple[datetime, UUID]:
    created, identity = cursor.key
    try:
        moment, run_id = datetime.fromisoformat(str(created)), UUID(str(identity))
    except ValueError as error:
        raise CursorInvalid("The cursor is not one that this list gave out.") from error
    if moment.tzinfo is None:
        raise CursorInvalid("The cursor is not one that this list gave out.")
    return moment, run_id


def _beyond(cursor: Cursor) -> Q:
    """Rows after the cursor in the list's order; with `from`, the row itself too.

    The bound on the time stands alone in front, because an OR by itself gives the index no place to start.
    """
    created, identity = _place(cursor)
    same = Q(id__lte=identity) if cursor.direction == "from" else Q(id__lt=identity)
    return Q(created_at__lte=created) & (Q(created_at__lt=created) | same)


def _newer_than(cursor: Cursor) -> Q:
    created, identity = _place(cursor)
    return Q(created_at__gte=created) & (Q(created_at__gt=created) | Q(id__gt=identity))


def run_detail(*, tenant_id: int, run_id: UUID) -> RunDetail | None:
    """One run; None when it is not there or is another tenant's. One statement."""
    found = Run.objects.filter(tenant_id=tenant_id, id=run_id).values(*_COLUMNS, *_DETAIL_COLUMNS).first()
    if found is None:
        return None
    return RunDetail(
        **_facts(found),
        revision=found["revision"],
        event_seq=found["event_seq"],
        concurrency=found["concurrency"],
        last_dispatched_at=found["last_dispatched_at"],
        traceparent=found["traceparent"],
        parent_run_id=found["parent_task__run_id"],
        parent_task=found["parent_task__key"],
    )


def run_exists(*, tenant_id: int, run_id: UUID) -> bool:
    """Whether the tenant has this run. One statement."""
    return Run.objects.filter(tenant_id=tenant_id, id=run_id).exists()


def run_params(*, tenant_id: int, run_id: UUID) -> str | None:
    """The params of a run as canonical JSON text; None when the run is not there. One statement."""
    return Run.objects.filter(tenant_id=tenant_id, id=run_id).values_list("params", flat=True).first()
