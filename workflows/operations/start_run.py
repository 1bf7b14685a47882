"""Start a run of a version. Commit first, then wake the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from uuid_utils.compat import uuid7

from platform_site import wake
from platform_site.api.idempotency import Idempotency, begin, finish
from platform_site.database import database_now
from workflows.compiled import compiled_version
from workflows.errors import VersionNotFound, WorkflowNotFound
from workflows.kernel.canonical import JsonValue, dumps
from workflows.kernel.definition import check_params
from workflows.ledger.births import NewRun, create_run
from workflows.models import Workflow, WorkflowVersion
from workflows.operations.intern_classes import intern_classes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is asked for with. ``version`` None is the latest."""

    workflow: str
    version: int | None = None
    params: JsonValue = field(default_factory=dict)
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that now exists, as it was at its start."""

    run_id: UUID
    workflow: str
    version: int
    created_at: datetime


def start_run(
    request: RunRequest, *, tenant_id: int, created_by: str, idempotency: Idempotency | None = None
) -> StartedRun:
    """Write the run, its tasks and its first event in one transaction; then wake the coordinator.

    Raises WorkflowNotFound, VersionNotFound, ParamsInvalid with every problem, TooManyTaskClasses,
    IdempotencyConflict. Takes no row lock that another operation waits for, but the tenant's when it needs a new class.
    """
    with transaction.atomic(durable=True):
        replay = begin(idempotency)
        if replay is not None:
            return _replayed(replay.facts)
        version = _find_version(request, tenant_id=tenant_id)
        compiled = compiled_version(version.pk)
        check_params(compiled, request.params)
        class_ids = intern_classes(tenant_id=tenant_id, tasks=compiled.definition.tasks)
        now = database_now()
        new = NewRun(
            id=uuid7(),
            tenant_id=tenant_id,
            workflow_id=version.workflow_id,
            version_id=version.pk,
            priority=request.priority,
            labels=dict(request.labels),
            params=dumps(request.params),
            created_by=created_by,
            traceparent=request.traceparent,
        )
        create_run(new, compiled, class_ids, now=now)
        started = StartedRun(new.id, request.workflow, version.number, now)
        finish(idempotency, facts=_facts(started))
    wake.coordinator()
    return started


def _find_version(request: RunRequest, *, tenant_id: int) -> WorkflowVersion:
    workflow = Workflow.objects.filter(tenant_id=tenant_id, name=request.workflow).first()
    if workflow is None:
        raise WorkflowNotFound
    number = workflow.latest_version if request.version is None else request.version
    version = WorkflowVersion.objects.filter(workflow=workflow, number=number).defer("definition").first()
    if version is None:
        raise VersionNotFound
    return version


def _facts(started: StartedRun) -> dict[str, Any]:
    return {
        "run_id": str(started.run_id),
        "workflow": started.workflow,
        "version": started.version,
        "created_at": started.created_at.isoformat(),
    }


def _replayed(facts: Mapping[str, Any]) -> StartedRun:
    return StartedRun(
        run_id=UUID(facts["run_id"]),
        workflow=facts["workflow"],
        version=facts["version"],
        created_at=datetime.fromisoformat(facts["created_at"]),
    )
