"""Workflows, versions and runs over HTTP: parse, one call, present."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from observability.tracing import current_traceparent
from platform_site.access.permissions import CanOperate, CanView
from platform_site.api.rendering import JsonText, json_answer
from platform_site.api.serializers import PageQuery, QuerySerializer
from platform_site.api.shapes import read
from platform_site.api.timing import measured
from platform_site.api.views import ApiView
from workflows import queries
from workflows.api import docs, presenters
from workflows.api.cursors import Sealed, checked
from workflows.api.shapes import EventQuery, LogQuery, RunQuery, StartRequest, TaskQuery
from workflows.errors import RunNotFound, TaskNotFound, VersionNotFound, WorkflowNotFound
from workflows.kernel.states import RunState, TaskState
from workflows.operations.publish_version import publish_version, publish_workflow
from workflows.operations.start_run import RunRequest, start_run

T = TypeVar("T")
LISTED_ATTEMPTS = 1_000


def found(value: T | None, error: type[Exception]) -> T:
    """The value, or the error that says what is not there."""
    if value is None:
        raise error
    return value


class Workflows(ApiView):
    """Publish a workflow; list all."""

    permissions = {"GET": CanView, "POST": CanOperate}
    max_body_bytes = settings.WORKLOAD.definition_limit_bytes

    @docs.list_workflows
    def get(self, request: Request) -> HttpResponse:
        asked = self.parse_query(PageQuery)
        tenant_id = self.principal.tenant_id
        sealed = Sealed("workflows", {"tenant": tenant_id})
        cursor = sealed.open(asked["cursor"])
        page = checked(
            lambda: queries.list_workflows(tenant_id=tenant_id, cursor=cursor, limit=asked["limit"])
        )
        body = presenters.present_page(page.rows, presenters.present_workflow, sealed.close(page.next))
        return json_answer(body)

    @docs.publish_workflow
    def post(self, request: Request) -> HttpResponse:
        document = self.document()
        with measured("publish_version"):
            published = publish_workflow(
                tenant_id=self.principal.tenant_id,
                document=document,
                created_by=str(self.principal),
                executors=settings.WORKLOAD.executor_kinds,
                idempotency=self.idempotency("publish_workflow", document),
            )
        return json_answer(presenters.present_published(published), status=201)


class Workflow(ApiView):
    """One workflow."""

    permissions = {"GET": CanView}

    @docs.get_workflow
    def get(self, request: Request, workflow_id: str) -> HttpResponse:
        self.parse_query(QuerySerializer)
        workflow = queries.workflow_detail(tenant_id=self.principal.tenant_id, name=workflow_id)
        return json_answer(presenters.present_workflow(found(workflow, WorkflowNotFound)))


class Versions(ApiView):
    """Publish the next version of a workflow; list all."""

    permissions = {"GET": CanView, "POST": CanOperate}
    max_body_bytes = settings.WORKLOAD.definition_limit_bytes

    @docs.list_versions
    def get(self, request: Request, workflow_id: str) -> HttpResponse:
        asked = self.parse_query(PageQuery)
        tenant_id = self.principal.tenant_id
        sealed = Sealed("versions", {"tenant": tenant_id, "workflow": workflow_id}, of=int)
        page = queries.workflow_versions(
            tenant_id=tenant_id, name=workflow_id, before=sealed.open(asked["cursor"]), limit=asked["limit"]
        )
        if not page.rows:  # every workflow has a first version
            found(queries.workflow_detail(tenant_id=tenant_id, name=workflow_id), WorkflowNotFound)
        body = presenters.present_page(
            page.rows, lambda row: presenters.present_version(workflow_id, row), sealed.close(page.older)
        )
        return json_answer(body)

    @docs.publish_version
    def post(self, request: Request, workflow_id: str) -> HttpResponse:
        document = self.document()
        with measured("publish_version"):
            published = publish_version(
                tenant_id=self.principal.tenant_id,
                workflow=workflow_id,
                document=document,
                created_by=str(self.principal),
                executors=settings.WORKLOAD.executor_kinds,
                idempotency=self.idempotency("publish_version", document),
            )
        return json_answer(presenters.present_published(published), status=201)


class Version(ApiView):
    """One version with its definition."""

    permissions = {"GET": CanView}

    @docs.get_version
    def get(self, request: Request, workflow_id: str, workflow_version: int) -> HttpResponse:
        self.parse_query(QuerySerializer)
        version, definition = found(
            queries.version_definition(
                tenant_id=self.principal.tenant_id, name=workflow_id, number=workflow_version
            ),
            VersionNotFound,
        )
        body = presenters.present_version(workflow_id, version) | {"definition": JsonText(definition)}
        return json_answer(body)


class StartView(ApiView):
    """Start a run."""

    permissions = {"POST": CanOperate}
    empty_body = True

    def start(self, workflow_id: str, version: int | None) -> HttpResponse:
        document = self.document()
        asked = read(StartRequest, document)
        wanted = RunRequest(
            workflow=workflow_id,
            version=version,
            params=asked.params,
            priority=asked.priority,
            labels=asked.labels,
            traceparent=current_traceparent() or "",
        )
        with measured("start_run"):
            started = start_run(
                wanted,
                tenant_id=self.principal.tenant_id,
                created_by=str(self.principal),
                idempotency=self.idempotency("start_run", document),
            )
        return json_answer(presenters.present_started(started), status=202)


class StartLatest(StartView):
    """Start a run of the latest version."""

    permissions = {"POST": CanOperate}

    @docs.start_latest
    def post(self, request: Request, workflow_id: str) -> HttpResponse:
        return self.start(workflow_id, None)


class StartVersion(StartView):
    """Start a run of one version."""

    permissions = {"POST": CanOperate}

    @docs.start_version
    def post(self, request: Request, workflow_id: str, workflow_version: int) -> HttpResponse:
        return self.start(workflow_id, workflow_version)


class Runs(ApiView):
    """All runs, newest first."""

    permissions = {"GET": CanView}

    @docs.list_runs
    def get(self, request: Request) -> HttpResponse:
        asked = self.parse_query(RunQuery)
        tenant_id = self.principal.tenant_id
        states = frozenset(map(RunState, asked.get("state", ())))
        labels = dict(label.split("=", 1) for label in asked.get("label", ()))
        filters = queries.RunFilters(states=states, workflow=asked.get("workflow_id", ""), labels=labels)
        sealed = Sealed(
            "runs",
            {"tenant": tenant_id, "states": sorted(states), "workflow": filters.workflow, "labels": labels},
        )
        cursor = sealed.open(asked["cursor"])
        page = checked(
            lambda: queries.list_runs(
                tenant_id=tenant_id, filters=filters, cursor=cursor, limit=asked["limit"]
            )
        )
        return json_answer(
            presenters.present_page(page.rows, presenters.present_run, sealed.close(page.older))
        )


class Run(ApiView):
    """One run."""

    permissions = {"GET": CanView}

    @docs.get_run
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        self.parse_query(QuerySerializer)
        run = found(queries.run_detail(tenant_id=self.principal.tenant_id, run_id=run_id), RunNotFound)
        params = found(queries.run_params(tenant_id=self.principal.tenant_id, run_id=run_id), RunNotFound)
        return json_answer(presenters.present_run_detail(run, params))


class OfRun(ApiView):
    """A list that belongs to a run."""

    def answer(self, run_id: UUID, body: dict[str, Any]) -> HttpResponse:
        """The page; an empty one only if the run is there at all."""
        tenant_id = self.principal.tenant_id
        if not body["items"] and not queries.run_exists(tenant_id=tenant_id, run_id=run_id):
            raise RunNotFound
        return json_answer(body)


class Tasks(OfRun):
    """The tasks of a run."""

    permissions = {"GET": CanView}

    @docs.list_tasks
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        asked = self.parse_query(TaskQuery)
        states = frozenset(map(TaskState, asked.get("state", ())))
        sealed = Sealed("tasks", {"run": run_id, "states": sorted(states)})
        cursor = sealed.open(asked["cursor"])
        page = checked(
            lambda: queries.run_tasks(
                tenant_id=self.principal.tenant_id,
                run_id=run_id,
                states=states,
                cursor=cursor,
                limit=asked["limit"],
            )
        )
        body = presenters.present_page(page.rows, presenters.present_task, sealed.close(page.next))
        return self.answer(run_id, body)


class Task(ApiView):
    """One task with its attempts and its output."""

    permissions = {"GET": CanView}

    @docs.get_task
    def get(self, request: Request, run_id: UUID, task_key: str) -> HttpResponse:
        self.parse_query(QuerySerializer)
        task = queries.task_detail(
            tenant_id=self.principal.tenant_id,
            run_id=run_id,
            key=task_key,
            attempt_limit=LISTED_ATTEMPTS,
            log_limit=1,
        )
        return json_answer(presenters.present_task_detail(found(task, TaskNotFound)))


class Logs(ApiView):
    """What the attempts of a task logged."""

    permissions = {"GET": CanView}

    @docs.list_logs
    def get(self, request: Request, run_id: UUID, task_key: str) -> HttpResponse:
        asked = self.parse_query(LogQuery)
        page = queries.task_logs(
            tenant_id=self.principal.tenant_id,
            run_id=run_id,
            key=task_key,
            attempt=asked.get("attempt"),
            cursor=asked["cursor"],
            limit=asked["limit"],
        )
        return json_answer(found(page, TaskNotFound).map(presenters.present_line).as_json())


class Events(OfRun):
    """What happened to a run, move by move."""

    permissions = {"GET": CanView}

    @docs.list_events
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        asked = self.parse_query(EventQuery)
        sealed = Sealed("events", {"run": run_id}, of=int)
        reached = sealed.open(asked["cursor"])
        page = queries.run_events(
            tenant_id=self.principal.tenant_id,
            run_id=run_id,
            after=asked.get("after", 0) if reached is None else reached,
            limit=asked["limit"],
        )
        position = page.rows[-1].seq if page.more else None
        body = presenters.present_page(page.rows, presenters.present_event, sealed.close(position))
        return self.answer(run_id, body)
