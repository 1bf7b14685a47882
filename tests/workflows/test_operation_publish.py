"""Publishing: version 1 of a new workflow, the next version of one that exists, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from platform_site.access.models import Tenant
from platform_site.access.tenants import default_tenant
from platform_site.api.errors import IdempotencyConflict
from platform_site.api.idempotency import Idempotency, request_digest
from tests.support.platform import KINDS, a_definition, a_task
from workflows.errors import DefinitionIdMismatch, WorkflowExists, WorkflowNotFound
from workflows.kernel.errors import DefinitionInvalid
from workflows.models import Workflow, WorkflowVersion
from workflows.operations.publish_version import PublishedVersion, publish_version, publish_workflow

pytestmark = pytest.mark.django_db


def _publish(document: dict[str, Any], **more: Any) -> PublishedVersion:
    more = {"tenant_id": default_tenant().id, "created_by": "ann", "executors": KINDS, **more}
    return publish_workflow(document=document, **more)


def _publish_next(workflow: str, document: dict[str, Any], **more: Any) -> PublishedVersion:
    more = {"tenant_id": default_tenant().id, "created_by": "ann", "executors": KINDS, **more}
    return publish_version(workflow=workflow, document=document, **more)


def _key(document: dict[str, Any], key: str = "k1") -> Idempotency:
    return Idempotency(default_tenant().id, "ann", "publish", key, request_digest("/workflows", document))


def test_the_first_version_makes_the_workflow() -> None:
    published = _publish(a_definition("etl", [a_task("a"), a_task("b", "a")]))
    assert (published.workflow, published.version) == ("etl", 1)
    workflow = Workflow.objects.get(name="etl")
    version = WorkflowVersion.objects.get(workflow=workflow)
    assert (workflow.latest_version, version.number, version.task_count) == (1, 1, 2)
    assert (workflow.created_by, version.created_by, version.source) == ("ann", "ann", "api")
    assert len(bytes(version.digest)) == 32


def test_the_next_version_counts_on_and_leaves_the_first_alone() -> None:
    _publish(a_definition("etl", [a_task("a")]))
    published = _publish_next("etl", a_definition("etl", [a_task("a"), a_task("b")]))
    assert published.version == 2
    assert Workflow.objects.get(name="etl").latest_version == 2
    versions = WorkflowVersion.objects.order_by("number").values_list("number", "task_count")
    assert list(versions) == [(1, 1), (2, 2)]


def test_a_name_that_is_taken_is_refused_and_nothing_is_stored() -> None:
    _publish(a_definition("etl", [a_task("a")]))
    with pytest.raises(WorkflowExists):
        _publish(a_definition("etl", [a_task("b")]))
    assert WorkflowVersion.objects.count() == 1


def test_two_tenants_may_use_one_name() -> None:
    other = Tenant.objects.create(slug="other", name="Other")
    document = a_definition("etl", [a_task("a")])
    assert _publish(document).version == 1
    assert _publish(document, tenant_id=other.id).version == 1
    with pytest.raises(WorkflowNotFound):
        _publish_next("mine", a_definition("mine", [a_task("a")]), tenant_id=other.id)


def test_an_invalid_definition_names_every_problem_and_stores_nothing() -> None:
    document = a_definition("etl", [a_task("a", "ghost"), a_task("b", executor="unheard-of")])
    with pytest.raises(DefinitionInvalid) as refused:
        _publish(document)
    assert len(refused.value.problems) == 2
    assert not Workflow.objects.exists()


def test_the_id_must_be_the_one_in_the_address() -> None:
    _publish(a_definition("etl", [a_task("a")]))
    with pytest.raises(DefinitionIdMismatch):
        _publish_next("etl", a_definition("another", [a_task("a")]))
    assert Workflow.objects.get().latest_version == 1


def test_a_version_of_an_unknown_workflow_is_not_found() -> None:
    with pytest.raises(WorkflowNotFound):
        _publish_next("etl", a_definition("etl", [a_task("a")]))


def test_a_repeat_under_the_same_key_answers_the_same() -> None:
    document = a_definition("etl", [a_task("a")])
    first = _publish(document, idempotency=_key(document))
    assert _publish(document, idempotency=_key(document)) == first
    assert WorkflowVersion.objects.count() == 1


def test_another_request_under_the_same_key_is_a_conflict() -> None:
    document = a_definition("etl", [a_task("a")])
    _publish(document, idempotency=_key(document))
    other = a_definition("etl2", [a_task("a")])
    with pytest.raises(IdempotencyConflict):
        _publish(other, idempotency=_key(other))


def test_a_refused_publish_leaves_its_key_free() -> None:
    _publish(a_definition("etl", [a_task("a")]))
    document = a_definition("etl", [a_task("b")])
    with pytest.raises(WorkflowExists):
        _publish(document, idempotency=_key(document))
    fine = a_definition("etl2", [a_task("b")])
    assert _publish(fine, idempotency=_key(fine)).workflow == "etl2"
