"""Starting a run: what is written, what a repeat answers, and what stores nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from platform_site.access.models import IdempotencyRecord, Tenant
from platform_site.access.tenants import default_tenant
from platform_site.api.errors import IdempotencyConflict
from platform_site.api.idempotency import Idempotency, request_digest
from tests.support.facts import moves_of, ready_rows, task_states, the_run
from tests.support.platform import a_run, a_task, published, started
from workflows.errors import TooManyTaskClasses, VersionNotFound, WorkflowNotFound
from workflows.kernel.errors import ParamsInvalid
from workflows.models import ReadyQueue, Run, Task, TaskClass
from workflows.operations.intern_classes import MAX_CLASSES_PER_TENANT
from workflows.operations.start_run import RunRequest, StartedRun, start_run

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def _key(digest: bytes = b"d" * 32) -> Idempotency:
    return Idempotency(default_tenant().id, "ann", "start_run", "k1", digest)


def _start(workflow: str, idempotency: Idempotency | None = None, **request: Any) -> StartedRun:
    wanted = RunRequest(workflow=workflow, **request)
    return start_run(wanted, tenant_id=default_tenant().id, created_by="ann", idempotency=idempotency)


def test_a_run_is_born_pending_with_all_its_tasks_and_one_event() -> None:
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "a", "b")])
    run = the_run(run_id)
    assert (run.state, run.revision, run.event_seq, run.tasks_total) == ("pending", 0, 1, 3)
    assert (run.tasks_ready, run.tasks_waiting_dependencies) == (1, 2)
    assert task_states(run_id) == {"a": "ready", "b": "waiting_dependencies", "c": "waiting_dependencies"}
    unmet = Task.objects.filter(run=run_id).order_by("position").values_list("unmet_dependencies", flat=True)
    assert list(unmet) == [0, 1, 2]
    assert moves_of(run_id) == [("run", str(run_id), "", "pending")]
    assert ready_rows(run_id) == [(1, True)]


def test_its_turn_comes_ten_seconds_early_and_five_a_priority() -> None:
    published("etl", [a_task("a")])
    for priority in (-10, 0, 10):
        run = the_run(_start("etl", priority=priority).run_id)
        assert run.turn_at == run.created_at - timedelta(seconds=10 + 5 * priority)
        assert ReadyQueue.objects.get(run=run).turn_at == run.turn_at


def test_classes_are_interned_once_for_equal_kind_and_labels() -> None:
    tasks = [
        a_task("a"),
        a_task("b", requires={"gpu": "yes", "zone": "x"}),
        a_task("c", requires={"zone": "x", "gpu": "yes"}),
        a_task("d", executor="python", action="documents.list"),
    ]
    published("etl", tasks)
    first, second = _start("etl"), _start("etl")
    assert TaskClass.objects.count() == 3
    for started_run in (first, second):
        classes = list(
            Task.objects.filter(run=started_run.run_id)
            .order_by("position")
            .values_list("task_class", flat=True)
        )
        assert classes[1] == classes[2]
        assert len(set(classes)) == 3
        assert sorted(ready_rows(started_run.run_id)) == [(1, True), (1, True), (2, True)]


def test_a_class_without_a_root_has_its_row_in_the_ready_queue_too() -> None:
    run_id = a_run([a_task("a"), a_task("b", "a", requires={"gpu": "yes"})])
    assert sorted(ready_rows(run_id)) == [(0, True), (1, True)]


def test_a_tenant_may_have_so_many_classes_and_no_more() -> None:
    tenant = default_tenant().id
    TaskClass.objects.bulk_create(
        TaskClass(tenant_id=tenant, executor_kind=f"k{number}", requires={})
        for number in range(MAX_CLASSES_PER_TENANT - 1)
    )
    published("fits", [a_task("a")])
    _start("fits")
    published("too-many", [a_task("a"), a_task("b", requires={"x": "1"})])
    with pytest.raises(TooManyTaskClasses):
        _start("too-many")
    assert TaskClass.objects.count() == MAX_CLASSES_PER_TENANT
    assert Run.objects.count() == 1
    _start("fits")


def test_params_are_checked_and_invalid_ones_store_nothing() -> None:
    published("etl", [a_task("a", requires={"x": "1"})], params=SCHEMA)
    with pytest.raises(ParamsInvalid) as refused:
        _start("etl", _key(), params={"n": "three"})
    assert refused.value.problems
    assert not Run.objects.exists()
    assert not Task.objects.exists()
    assert not TaskClass.objects.exists()
    assert not IdempotencyRecord.objects.exists()
    assert _start("etl", _key(), params={"n": 3}).version == 1
    assert Run.objects.get().params == '{"n":3}'


def test_a_version_can_be_named_and_the_latest_is_the_default() -> None:
    published("etl", [a_task("a")])
    assert _start("etl").version == 1
    assert _start("etl", version=1).version == 1
    with pytest.raises(VersionNotFound):
        _start("etl", version=2)
    with pytest.raises(WorkflowNotFound):
        _start("ghost")


def test_another_tenants_workflow_is_not_found() -> None:
    published("etl", [a_task("a")])
    stranger = Tenant.objects.create(slug="stranger", name="Stranger")
    with pytest.raises(WorkflowNotFound):
        start_run(RunRequest(workflow="etl"), tenant_id=stranger.id, created_by="eve")


def test_a_repeat_under_the_same_key_answers_the_same_run() -> None:
    published("etl", [a_task("a")])
    key = _key(request_digest("/runs", {}))
    first = _start("etl", key)
    assert _start("etl", key) == first
    assert Run.objects.count() == 1


def test_another_request_under_the_same_key_is_a_conflict() -> None:
    published("etl", [a_task("a")])
    _start("etl", _key(b"1" * 32))
    with pytest.raises(IdempotencyConflict):
        _start("etl", _key(b"2" * 32))
    assert Run.objects.count() == 1


def test_labels_trace_and_author_are_kept() -> None:
    published("etl", [a_task("a")])
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = the_run(_start("etl", labels={"team": "x"}, traceparent=trace).run_id)
    assert (run.labels, run.traceparent, run.created_by) == ({"team": "x"}, trace, "ann")
    assert started("etl") != run.pk
