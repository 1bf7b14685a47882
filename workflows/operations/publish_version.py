"""Publish a definition: as a new workflow, or as the next version of one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from platform_site.api.errors import Detail
from platform_site.api.idempotency import Idempotency, begin, finish
from workflows.errors import DefinitionIdMismatch, WorkflowExists, WorkflowNotFound
from workflows.kernel.canonical import JsonValue
from workflows.kernel.definition import CompiledWorkflow, compile_workflow
from workflows.kernel.errors import Problem
from workflows.models import Workflow, WorkflowVersion


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A version that now exists. ``warnings`` are worth a look but did not stop it."""

    workflow: str
    version: int
    created_at: datetime
    warnings: tuple[Problem, ...] = ()


def publish_workflow(
    *,
    tenant_id: int,
    document: JsonValue,
    created_by: str,
    executors: Collection[str],
    source: str = "api",
    idempotency: Idempotency | None = None,
) -> PublishedVersion:
    """Create the workflow that the definition's ``id`` names, with this definition as version 1.

    Raises DefinitionInvalid with every problem, WorkflowExists, IdempotencyConflict.
    """
    compiled = compile_workflow(document, executors=executors)
    with transaction.atomic(durable=True):
        replay = begin(idempotency)
        if replay is not None:
            return _replayed(replay.facts, compiled)
        # The unique name settles a race between two creators; nobody asks first.
        workflow, made = Workflow.objects.get_or_create(
            tenant_id=tenant_id, name=compiled.definition.id, defaults={"created_by": created_by}
        )
        if not made:
            raise WorkflowExists
        return _publish(workflow, compiled, created_by=created_by, source=source, idempotency=idempotency)


def publish_version(
    *,
    tenant_id: int,
    workflow: str,
    document: JsonValue,
    created_by: str,
    executors: Collection[str],
    source: str = "api",
    idempotency: Idempotency | None = None,
) -> PublishedVersion:
    """Publish the next version of an existing workflow. Locks the workflow row.

    Raises DefinitionInvalid with every problem, DefinitionIdMismatch, WorkflowNotFound, IdempotencyConflict.
    """
    compiled = compile_workflow(document, executors=executors)
    if compiled.definition.id != workflow:
        problem = Detail("$.id", "definition_id_mismatch", f"The id must be {workflow!r}, as in the address.")
        raise DefinitionIdMismatch(details=[problem])
    with transaction.atomic(durable=True):
        replay = begin(idempotency)
        if replay is not None:
            return _replayed(replay.facts, compiled)
        found = (
            Workflow.objects.select_for_update(no_key=True).filter(tenant_id=tenant_id, name=workflow).first()
        )
        if found is None:
            raise WorkflowNotFound
        return _publish(found, compiled, created_by=created_by, source=source, idempotency=idempotency)


def _publish(
    workflow: Workflow,
    compiled: CompiledWorkflow,
    *,
    created_by: str,
    source: str,
    idempotency: Idempotency | None,
) -> PublishedVersion:
    version = WorkflowVersion.objects.create(
        workflow=workflow,
        number=workflow.latest_version + 1,
        definition=compiled.canonical,
        digest=compiled.digest,
        task_count=len(compiled.graph.keys),
        source=source,
        created_by=created_by,
    )
    Workflow.objects.filter(pk=workflow.pk).update(latest_version=version.number)
    facts = {
        "workflow": workflow.name,
        "version": version.number,
        "created_at": version.created_at.isoformat(),
    }
    finish(idempotency, facts=facts)
    return PublishedVersion(workflow.name, version.number, version.created_at, compiled.warnings)


def _replayed(facts: object, compiled: CompiledWorkflow) -> PublishedVersion:
    values = dict(facts)  # type: ignore[call-overload] # a mapping that came back from jsonb
    return PublishedVersion(
        workflow=values["workflow"],
        version=values["version"],
        created_at=datetime.fromisoformat(values["created_at"]),
        warnings=compiled.warnings,
    )
