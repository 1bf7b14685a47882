"""Every read of the run history that pages, API, admin and other apps need.

Functions take keywords only, see one tenant, return frozen dataclasses and issue a fixed number of statements
that tests pin. Lists are paged by keyset (never by offset, never counted): a page costs the same at the end
of a hundred thousand rows as at their start. What is not there, or is another tenant's, is `None`.
"""

from workflows.queries.catalogue import (
    VersionPage,
    VersionRow,
    WorkflowDetail,
    WorkflowPage,
    WorkflowRow,
    list_workflows,
    version_definition,
    workflow_detail,
    workflow_versions,
)
from workflows.queries.cursors import CursorInvalid
from workflows.queries.events import EventPage, EventRow, run_events
from workflows.queries.logs import LoggedLine, task_logs
from workflows.queries.overview import RunsOverview, runs_overview
from workflows.queries.runs import (
    RunDetail,
    RunFilters,
    RunPage,
    RunRow,
    list_runs,
    run_detail,
    run_exists,
    run_params,
)
from workflows.queries.tasks import (
    AttemptRow,
    Dependency,
    LogLine,
    RunAttempt,
    TaskDetail,
    TaskPage,
    TaskRow,
    next_retries,
    run_attempts,
    run_tasks,
    task_detail,
)

__all__ = [
    "AttemptRow",
    "CursorInvalid",
    "Dependency",
    "EventPage",
    "EventRow",
    "LogLine",
    "LoggedLine",
    "RunAttempt",
    "RunDetail",
    "RunFilters",
    "RunPage",
    "RunRow",
    "RunsOverview",
    "TaskDetail",
    "TaskPage",
    "TaskRow",
    "VersionPage",
    "VersionRow",
    "WorkflowDetail",
    "WorkflowPage",
    "WorkflowRow",
    "list_runs",
    "list_workflows",
    "next_retries",
    "run_attempts",
    "run_detail",
    "run_events",
    "run_exists",
    "run_params",
    "run_tasks",
    "runs_overview",
    "task_detail",
    "task_logs",
    "version_definition",
    "workflow_detail",
    "workflow_versions",
]
