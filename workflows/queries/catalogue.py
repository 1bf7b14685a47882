"""Workflows and their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from workflows.kernel.states import RunState
from workflows.models import Run, Workflow, WorkflowVersion
from workflows.queries.cursors import Cursor, decode

MAX_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """A workflow as lists show it, with its latest run where there was one."""

    id: int
    name: str
    latest_version: int
    task_count: int | None
    created_at: datetime
    created_by: str
    last_run_id: UUID | None
    last_run_state: RunState | None
    last_run_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDetail(WorkflowRow):
    """One workflow; its versions are a list of their own."""


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """In the order of the names. `next` is a cursor, None at the end."""

    rows: tuple[WorkflowRow, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One published definition, without its text."""

    number: int
    task_count: int
    digest: str
    source: str
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Newest first. `older` is the number to read on before, None at the end."""

    rows: tuple[VersionRow, ...]
    older: int | None


def _with_last_run(workflows: QuerySet[Workflow]) -> QuerySet[Workflow, dict[str, Any]]:
    latest = Run.objects.filter(workflow_id=OuterRef("id")).order_by("-created_at", "-id")
    version = WorkflowVersion.objects.filter(workflow_id=OuterRef("id"), number=OuterRef("latest_version"))
    rows: QuerySet[Workflow, dict[str, Any]] = workflows.annotate(
        task_count=Subquery(version.values("task_count")[:1]),
        last_run_id=Subquery(latest.values("id")[:1]),
        last_run_state=Subquery(latest.values("state")[:1]),
        last_run_at=Subquery(latest.values("created_at")[:1]),
    ).values(*WorkflowRow.__slots__)
    return rows


def _facts(values: dict[str, Any]) -> dict[str, Any]:
    state = values["last_run_state"]
    return {**values, "last_run_state": None if state is None else RunState(state)}


def list_workflows(*, tenant_id: int, cursor: str | None = None, limit: int = 50) -> WorkflowPage:
    """A page of workflows by name. Raises CursorInvalid. One statement."""
    limit = max(1, min(limit, MAX_PAGE))
    workflows = Workflow.objects.filter(tenant_id=tenant_id)
    if cursor is not None:
        (name,) = decode(cursor, shape=(str,)).key
        workflows = workflows.filter(name__gt=name)
    found = [
        WorkflowRow(**_facts(values)) for values in _with_last_run(workflows.order_by("name"))[: limit + 1]
    ]
    rows = tuple(found[:limit])
    return WorkflowPage(rows, Cursor("older", (rows[-1].name,)).encode() if len(found) > limit else None)


def workflow_detail(*, tenant_id: int, name: str) -> WorkflowDetail | None:
    """One workflow; None when it is not there. One statement."""
    found = _with_last_run(Workflow.objects.filter(tenant_id=tenant_id, name=name)).first()
    return None if found is None else WorkflowDetail(**_facts(found))


def workflow_versions(
    *, tenant_id: int, name: str, before: int | None = None, limit: int = 50
) -> VersionPage:
    """Versions of a workflow, newest first; empty when it is not there. One statement."""
    limit = max(1, min(limit, MAX_PAGE))
    versions = WorkflowVersion.objects.filter(workflow__tenant_id=tenant_id, workflow__name=name)
    if before is not None:
        versions = versions.filter(number__lt=before)
    listed = versions.order_by("-number").values_list(*VersionRow.__slots__)
    found = [_version(facts) for facts in listed[: limit + 1]]
    rows = tuple(found[:limit])
    return VersionPage(rows, rows[-1].number if len(found) > limit else None)


def version_definition(*, tenant_id: int, name: str, number: int) -> tuple[VersionRow, str] | None:
    """A version and its normalised definition (canonical JSON); None when it is not there. One statement."""
    found = (
        WorkflowVersion.objects.filter(workflow__tenant_id=tenant_id, workflow__name=name, number=number)
        .values_list(*VersionRow.__slots__, "definition")
        .first()
    )
    if found is None:
        return None
    *facts, text = found
    return _version(facts), text


def _version(facts: Sequence[Any]) -> VersionRow:
    number, task_count, digest, source, created_at, created_by = facts
    return VersionRow(number, task_count, bytes(digest).hex(), source, created_at, created_by)
