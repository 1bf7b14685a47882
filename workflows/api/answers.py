"""How this app's answers look, for the API description. `presenters` builds them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from platform_site.api.shapes import Answer
from workflows.kernel.states import AttemptState, RunState, TaskState


class Warned(Answer):
    """Worth a look, though it did not stop anything."""

    path: str
    code: str
    message: str


class Published(Answer):
    """The version that now exists."""

    workflow_id: str
    version: int
    created_at: datetime
    warnings: list[Warned]


class LastRun(Answer):
    """The latest run of a workflow."""

    run_id: UUID
    state: RunState
    created_at: datetime


class Workflow(Answer):
    """A name under which versions of a definition are published."""

    workflow_id: str
    latest_version: int
    task_count: int | None
    """Of the latest version."""
    created_at: datetime
    created_by: str
    last_run: LastRun | None


class WorkflowPage(Answer):
    """Workflows in the order of their names."""

    items: list[Workflow]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class Version(Answer):
    """A published definition; it never changes."""

    workflow_id: str
    version: int
    task_count: int
    hash: str
    """SHA-256 of the definition without its defaults, in hex: equal definitions have equal ones."""
    source: str
    created_at: datetime
    created_by: str


class VersionPage(Answer):
    """Versions, newest first."""

    items: list[Version]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class VersionDetail(Version):
    """A version with its definition."""

    definition: dict[str, Any]
    """Normalised: every default is filled in. Numbers are exact."""


class Started(Answer):
    """A run that was accepted; it begins when a worker is free."""

    run_id: UUID
    workflow_id: str
    workflow_version: int
    state: Literal["pending"]
    """As it started. Look at the run for what became of it."""
    created_at: datetime


class TaskCounts(Answer):
    """How many tasks of the run are in each state."""

    waiting_dependencies: int
    ready: int
    queued: int
    running: int
    waiting_retry: int
    waiting_approval: int
    succeeded: int
    failed: int
    canceled: int
    skipped: int


class Run(Answer):
    """One execution of a version."""

    run_id: UUID
    workflow_id: str
    workflow_version: int
    state: RunState
    priority: int
    labels: dict[str, str]
    task_count: int
    tasks: TaskCounts
    cancel_requested_at: datetime | None
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    trigger: str


class RunPage(Answer):
    """Runs, newest first."""

    items: list[Run]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class RunDetail(Run):
    """A run in full."""

    revision: int
    """Grows by one with every committed change of the run."""
    event_count: int
    """Also the `seq` of its latest event."""
    concurrency: int
    last_dispatched_at: datetime | None
    traceparent: str
    parent_run_id: UUID | None
    parent_task_key: str | None
    params: dict[str, Any]


class Progress(Answer):
    """What the running attempt last said of itself."""

    percent: int | None
    text: str


class Task(Answer):
    """One task of a run."""

    key: str
    position: int
    map_index: int | None
    state: TaskState
    reason: str
    """Why it is in this state, where that is not plain."""
    executor_kind: str
    action: str
    attempts: int
    """Attempts begun."""
    attempts_used: int
    """Those that count against the retry budget."""
    unmet_dependencies: int
    ready_at: datetime | None
    """When its retry is due."""
    started_at: datetime | None
    finished_at: datetime | None
    error_code: str
    error_message: str
    progress: Progress
    worker_name: str
    """Of its latest attempt."""


class TaskPage(Answer):
    """Tasks in the order of the definition."""

    items: list[Task]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class Attempt(Answer):
    """One try of a task by one worker."""

    number: int
    state: AttemptState
    worker_id: UUID | None
    worker_name: str
    dispatch_id: UUID | None
    generation: int | None
    started_at: datetime
    deadline: datetime
    finished_at: datetime | None
    error_code: str
    error_message: str
    reason: str
    log_truncated: bool


class Dependency(Answer):
    """A task that this one waits for."""

    key: str
    state: TaskState


class TaskDetail(Task):
    """A task in full."""

    requires: dict[str, str]
    max_attempts: int
    definition: dict[str, Any]
    """Its part of the version."""
    dependencies: list[Dependency]
    """The first fifty."""
    dependency_count: int
    attempt_list: list[Attempt]
    """In order; the latest thousand."""
    more_attempts: bool
    """There are older ones than those listed."""
    output: Any
    """Of its success; null before."""


class LogLine(Answer):
    """One line that an attempt logged."""

    attempt: int
    at: datetime
    level: str
    text: str
    cleaned: bool
    """Characters that cannot be stored were replaced, or the line was cut."""


class LogPage(Answer):
    """Lines, attempt by attempt, oldest first."""

    items: list[LogLine]
    next_cursor: str | None
    """Leads to what follows; null at the end."""


class Event(Answer):
    """One move of a run, a task or an attempt."""

    seq: int
    """Counts from 1 within the run, without a gap."""
    at: datetime
    entity: Literal["run", "task", "attempt"]
    key: str
    """The task's key; for an attempt `key/number`; empty for the run."""
    from_state: str
    to_state: str
    reason: str
    actor: str


class EventPage(Answer):
    """Events, oldest first."""

    items: list[Event]
    next_cursor: str | None
    """Leads to what follows; null when there is nothing yet."""
