"""What the API description says of workflows and runs: summaries, parameters, shapes, examples."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema

from platform_site.api.schema import IDEMPOTENCY_KEY
from platform_site.api.serializers import PageQuery
from workflows.api import answers
from workflows.api.shapes import EventQuery, LogQuery, RunQuery, StartRequest, TaskQuery
from workflows.kernel.definition import WorkflowDefinition

WORKFLOWS = ["workflows"]
RUNS = ["runs"]
RUN_ID = "01932c07-5d4e-7a51-9d0b-6a3f5d1c2b70"
AT = "2026-05-04T09:30:00.123456Z"

_DEFINITION: dict[str, Any] = {
    "id": "nightly-report",
    "concurrency": 8,
    "params": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
    "tasks": [
        {
            "key": "fetch",
            "executor": "python",
            "action": "reports.fetch",
            "input": {"day": {"$from": "params.day"}},
            "retry": {"max_attempts": 3, "interval_ms": 1000, "backoff": "exponential"},
        },
        {
            "key": "render",
            "executor": "python",
            "action": "reports.render",
            "input": {"rows": {"$from": "tasks.fetch.output.rows"}},
            "depends_on": ["fetch"],
            "timeout_ms": 60000,
        },
    ],
}
_PUBLISHED = {"workflow_id": "nightly-report", "version": 1, "created_at": AT, "warnings": []}
_STARTED = {
    "run_id": RUN_ID,
    "workflow_id": "nightly-report",
    "workflow_version": 1,
    "state": "pending",
    "created_at": AT,
}


def sent(value: Any) -> OpenApiExample:
    """An example of a request."""
    return OpenApiExample("Request", value=value, request_only=True)


def answered(value: Any, status: int = 200) -> OpenApiExample:
    """An example of an answer."""
    return OpenApiExample("Answer", value=value, response_only=True, status_codes=[str(status)])


list_workflows = extend_schema(
    operation_id="list_workflows",
    summary="List workflows",
    description="In the order of their names, each with its latest run.",
    tags=WORKFLOWS,
    parameters=[PageQuery],
    responses=answers.WorkflowPage,
)
publish_workflow = extend_schema(
    operation_id="publish_workflow",
    summary="Publish a workflow",
    description="Creates the workflow that the definition's `id` names, with the definition as version 1. "
    "A definition that is wrong is `definition_invalid` with every problem at once; a body that is not JSON is "
    "`invalid_json` with line and column; a workflow of that name is `workflow_exists`.",
    tags=WORKFLOWS,
    parameters=[IDEMPOTENCY_KEY],
    request=WorkflowDefinition,
    responses={201: answers.Published},
    examples=[sent(_DEFINITION), answered(_PUBLISHED, 201)],
)
get_workflow = extend_schema(
    operation_id="get_workflow",
    summary="Read a workflow",
    tags=WORKFLOWS,
    responses=answers.Workflow,
)
list_versions = extend_schema(
    operation_id="list_versions",
    summary="List the versions of a workflow",
    description="Newest first, without their definitions.",
    tags=WORKFLOWS,
    parameters=[PageQuery],
    responses=answers.VersionPage,
)
publish_version = extend_schema(
    operation_id="publish_version",
    summary="Publish the next version of a workflow",
    description="The definition's `id` must be the workflow's name. Runs keep the version they started with.",
    tags=WORKFLOWS,
    parameters=[IDEMPOTENCY_KEY],
    request=WorkflowDefinition,
    responses={201: answers.Published},
    examples=[sent(_DEFINITION), answered({**_PUBLISHED, "version": 2}, 201)],
)
get_version = extend_schema(
    operation_id="get_version",
    summary="Read a version with its definition",
    description="The definition is normalised (every default filled in), and its numbers are exact.",
    tags=WORKFLOWS,
    responses=answers.VersionDetail,
)

_START: dict[str, Any] = {
    "tags": RUNS,
    "parameters": [IDEMPOTENCY_KEY],
    "request": StartRequest,
    "responses": {202: answers.Started},
    "examples": [
        sent({"params": {"day": "2026-05-03"}, "priority": 2, "labels": {"team": "finance"}}),
        answered(_STARTED, 202),
    ],
}
start_latest = extend_schema(
    operation_id="start_latest",
    summary="Start a run of the latest version",
    description="The body may be empty. Params that do not fit the definition are `params_invalid`.",
    **_START,
)
start_version = extend_schema(
    operation_id="start_version",
    summary="Start a run of one version",
    description="The body may be empty. Params that do not fit the definition are `params_invalid`.",
    **_START,
)
list_runs = extend_schema(
    operation_id="list_runs",
    summary="List runs",
    description="Newest first. Filters combine.",
    tags=RUNS,
    parameters=[RunQuery],
    responses=answers.RunPage,
)
get_run = extend_schema(
    operation_id="get_run",
    summary="Read a run",
    description="With its params, and how many of its tasks are in each state.",
    tags=RUNS,
    responses=answers.RunDetail,
)
list_tasks = extend_schema(
    operation_id="list_tasks",
    summary="List the tasks of a run",
    description="In the order of the definition.",
    tags=RUNS,
    parameters=[TaskQuery],
    responses=answers.TaskPage,
)
get_task = extend_schema(
    operation_id="get_task",
    summary="Read a task with its attempts and its output",
    tags=RUNS,
    responses=answers.TaskDetail,
)
list_logs = extend_schema(
    operation_id="list_logs",
    summary="List what the attempts of a task logged",
    description="Attempt by attempt, oldest first.",
    tags=RUNS,
    parameters=[LogQuery],
    responses=answers.LogPage,
)
list_events = extend_schema(
    operation_id="list_events",
    summary="List what happened to a run",
    description="Oldest first. `seq` counts from 1 without a gap, so `after` follows a run without loss.",
    tags=RUNS,
    parameters=[EventQuery],
    responses=answers.EventPage,
)
