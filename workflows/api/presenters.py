"""Facts of this app as plain values of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from platform_site.api.rendering import JsonText
from workflows.kernel.errors import Problem
from workflows.kernel.states import RunState
from workflows.operations.publish_version import PublishedVersion
from workflows.operations.start_run import StartedRun
from workflows.queries import (
    AttemptRow,
    EventRow,
    LoggedLine,
    RunDetail,
    RunRow,
    TaskDetail,
    TaskRow,
    VersionRow,
    WorkflowRow,
)

T = TypeVar("T")


def present_page(rows: Sequence[T], present: Callable[[T], Any], next_cursor: str | None) -> dict[str, Any]:
    """A page of a list."""
    return {"items": [present(row) for row in rows], "next_cursor": next_cursor}


def present_published(published: PublishedVersion) -> dict[str, Any]:
    """A version that now exists."""
    return {
        "workflow_id": published.workflow,
        "version": published.version,
        "created_at": published.created_at,
        "warnings": [_warning(problem) for problem in published.warnings],
    }


def _warning(problem: Problem) -> dict[str, Any]:
    return {"path": problem.path, "code": problem.code, "message": problem.message}


def present_workflow(workflow: WorkflowRow) -> dict[str, Any]:
    """A workflow with its latest run."""
    last_run = None
    if workflow.last_run_id is not None:
        last_run = {
            "run_id": workflow.last_run_id,
            "state": workflow.last_run_state,
            "created_at": workflow.last_run_at,
        }
    return {
        "workflow_id": workflow.name,
        "latest_version": workflow.latest_version,
        "task_count": workflow.task_count,
        "created_at": workflow.created_at,
        "created_by": workflow.created_by,
        "last_run": last_run,
    }


def present_version(workflow: str, version: VersionRow) -> dict[str, Any]:
    """A version without its definition."""
    return {
        "workflow_id": workflow,
        "version": version.number,
        "task_count": version.task_count,
        "hash": version.digest,
        "source": version.source,
        "created_at": version.created_at,
        "created_by": version.created_by,
    }


def present_started(started: StartedRun) -> dict[str, Any]:
    """A run that was accepted, as it started: also when a repeated request is answered again."""
    return {
        "run_id": started.run_id,
        "workflow_id": started.workflow,
        "workflow_version": started.version,
        "state": RunState.PENDING,
        "created_at": started.created_at,
    }


def present_run(run: RunRow) -> dict[str, Any]:
    """A run as lists have it."""
    return {
        "run_id": run.id,
        "workflow_id": run.workflow,
        "workflow_version": run.version,
        "state": run.state,
        "priority": run.priority,
        "labels": dict(run.labels),
        "task_count": run.tasks_total,
        "tasks": {state.value: count for state, count in run.counts.items()},
        "cancel_requested_at": run.cancel_requested_at,
        "created_at": run.created_at,
        "created_by": run.created_by,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "trigger": run.trigger,
    }


def present_run_detail(run: RunDetail, params: str) -> dict[str, Any]:
    """A run in full; `params` is their stored text."""
    return present_run(run) | {
        "revision": run.revision,
        "event_count": run.event_seq,
        "concurrency": run.concurrency,
        "last_dispatched_at": run.last_dispatched_at,
        "traceparent": run.traceparent,
        "parent_run_id": run.parent_run_id,
        "parent_task_key": run.parent_task,
        "params": JsonText(params),
    }


def present_task(task: TaskRow) -> dict[str, Any]:
    """A task as lists have it."""
    return {
        "key": task.key,
        "position": task.position,
        "map_index": task.map_index,
        "state": task.state,
        "reason": task.reason,
        "executor_kind": task.executor_kind,
        "action": task.action,
        "attempts": task.attempts,
        "attempts_used": task.attempts_used,
        "unmet_dependencies": task.unmet_dependencies,
        "ready_at": task.ready_at,
        "started_at": task.started_at,
        "finished_at": task.finished_at,
        "error_code": task.error_code,
        "error_message": task.error_message,
        "progress": {"percent": task.progress_percent, "text": task.progress_text},
        "worker_name": task.worker_name,
    }


def present_task_detail(task: TaskDetail) -> dict[str, Any]:
    """A task in full, its attempts in order."""
    return present_task(task) | {
        "requires": dict(task.requires),
        "max_attempts": task.max_attempts,
        "definition": JsonText(task.definition),
        "dependencies": [{"key": each.key, "state": each.state} for each in task.dependencies],
        "dependency_count": task.dependency_count,
        "attempt_list": [_attempt(attempt) for attempt in reversed(task.attempt_rows)],
        "more_attempts": task.more_attempts,
        "output": None if task.output is None else JsonText(task.output),
    }


def _attempt(attempt: AttemptRow) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in AttemptRow.__slots__}


def present_line(line: LoggedLine) -> dict[str, Any]:
    """One line of a log."""
    return {
        "attempt": line.number,
        "at": line.at,
        "level": line.level,
        "text": line.text,
        "cleaned": line.cleaned,
    }


def present_event(event: EventRow) -> dict[str, Any]:
    """One move."""
    return {name: getattr(event, name) for name in EventRow.__slots__}
