"""The run history in the admin: to look at, to search, to ask for a cancel. Nothing here writes a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from platform_site.console.admin_base import BoundedInline, ReadOnlyAdmin, as_uuid, shown_text
from platform_site.console.formatting import elapsed, plural, short_id
from platform_site.console.templatetags.console import state_badge
from workflows.models import (
    Attempt,
    AttemptLog,
    ReadyQueue,
    Run,
    StateEvent,
    Task,
    TaskClass,
    Workflow,
    WorkflowVersion,
)
from workflows.operations.request_cancel import CancelAnswer, request_cancel

#: One action locks the runs it takes; more of them go in several steps.
CANCEL_AT_ONCE = 500


class KindFilter(admin.SimpleListFilter):
    """By executor kind; the choices come from the few task classes, not from all the tasks."""

    title = "executor kind"
    parameter_name = "kind"

    def lookups(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        model_admin: admin.ModelAdmin[Any],  # noqa: ARG002 - as above
    ) -> list[tuple[str, str]]:
        kinds = TaskClass.objects.order_by("executor_kind").values_list("executor_kind", flat=True).distinct()
        return [(kind, kind) for kind in kinds]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 - as above
        return queryset.filter(executor_kind=self.value()) if self.value() else queryset


class LevelFilter(admin.SimpleListFilter):
    """By the level of a log line."""

    title = "level"
    parameter_name = "level"

    def lookups(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        model_admin: admin.ModelAdmin[Any],  # noqa: ARG002 - as above
    ) -> list[tuple[str, str]]:
        return [(level, level) for level in ("debug", "info", "warning", "error")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 - as above
        return queryset.filter(level=self.value()) if self.value() else queryset


def _badge(kind: str, row: Run | Task | Attempt) -> SafeString:
    return state_badge(kind, row.state)


class TaskInline(BoundedInline[Task, Run]):
    model = Task
    verbose_name_plural = "tasks (the first 50; the run's page in the console has all)"
    fields = ("position", "key", "state", "executor_kind", "action", "attempts", "started_at", "finished_at")
    ordering = ("position", "id")


class AttemptInline(BoundedInline[Attempt, Run]):
    model = Attempt
    fk_name = "run"
    verbose_name_plural = "attempts (the latest 50)"
    fields = (
        "task_key",
        "number",
        "state",
        "worker_name",
        "started_at",
        "finished_at",
        "error_code",
        "reason",
    )
    ordering = ("-started_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        return super().get_queryset(request).select_related("task")

    @admin.display(description="task")
    def task_key(self, attempt: Attempt) -> str:
        return attempt.task.key


class EventInline(BoundedInline[StateEvent, Run]):
    model = StateEvent
    verbose_name_plural = "events (the latest 50)"
    fields = ("seq", "at", "entity", "key", "from_state", "to_state", "reason", "actor")
    ordering = ("-seq",)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin[Run]):
    list_display = (
        "short",
        "badge",
        "workflow",
        "version",
        "priority",
        "done",
        "took",
        "created_by",
        "created_at",
    )
    list_select_related = ("workflow", "version")
    list_filter = ("state", "tenant")
    search_fields = ("workflow__name__exact",)
    search_help_text = "A run's id, or the exact name of a workflow"
    actions = ("cancel_selected",)
    inlines = (TaskInline, AttemptInline, EventInline)
    long_texts = ("params",)

    @admin.display(description="run", ordering="pk")
    def short(self, run: Run) -> str:
        return short_id(run.pk)

    @admin.display(description="state", ordering="state")
    def badge(self, run: Run) -> SafeString:
        return _badge("run", run)

    @admin.display(description="tasks")
    def done(self, run: Run) -> str:
        finished = run.tasks_succeeded + run.tasks_failed + run.tasks_canceled + run.tasks_skipped
        return f"{finished:,} of {run.tasks_total:,}"

    @admin.display(description="time")
    def took(self, run: Run) -> str:
        return elapsed(run.started_at, run.finished_at, timezone.now())

    @admin.display(description="params")
    def params_shown(self, run: Run) -> str:
        return shown_text(run.params)

    def view_on_site(self, run: Model) -> str:
        return reverse("run", kwargs={"run_id": run.pk})

    def searched(self, rows: QuerySet[Run], term: str) -> QuerySet[Run]:
        # A workflow's runs have an index of their own, so a name reaches all of them.
        return rows.filter(pk=term) if as_uuid(term) is not None else rows

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Cancelling needs the right to change runs; looking at them does not."""
        return request.user.has_perm("workflows.change_run")

    @admin.action(description="Cancel selected runs", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        chosen = list(runs.order_by("pk").values_list("pk", flat=True)[: CANCEL_AT_ONCE + 1])
        if len(chosen) > CANCEL_AT_ONCE:
            text = f"At most {CANCEL_AT_ONCE} runs at once; nothing was canceled. Select fewer."
            self.message_user(request, text, messages.ERROR)
            return
        answers = request_cancel(run_ids=chosen, tenant_id=None, actor=f"user:{request.user.get_username()}")
        for level, text in cancel_report(answers):
            self.message_user(request, text, level)


def cancel_report(answers: Sequence[CancelAnswer]) -> list[tuple[int, str]]:
    """What a cancel of several runs moved, and what it did not, as messages."""
    asked = sum(answer.requested for answer in answers)
    finished = sum(answer.state.terminal for answer in answers)
    before = len(answers) - asked - finished
    report = []
    if asked:
        report.append((messages.SUCCESS, f"{plural(asked, 'run is', 'runs are')} being canceled."))
    if before:
        text = f"{plural(before, 'run was', 'runs were')} being canceled already."
        report.append((messages.INFO, text))
    if finished:
        text = f"{plural(finished, 'run had', 'runs had')} already finished; nothing to cancel."
        report.append((messages.WARNING, text))
    return report


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin[Task]):
    list_display = ("key", "badge", "run", "executor_kind", "action", "attempts", "started_at", "finished_at")
    list_filter = ("state", KindFilter)
    search_fields = ("=key",)
    search_help_text = "A run's id (all its tasks), or a task's key among recent tasks"
    run_search = "run_id"
    long_texts = ("output",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        # The output of a task may be megabytes, and lists do not show it.
        return super().get_queryset(request).select_related("run").defer("output", "run__params")

    @admin.display(description="state", ordering="state")
    def badge(self, task: Task) -> SafeString:
        return _badge("task", task)

    @admin.display(description="output")
    def output_shown(self, task: Task) -> str:
        return shown_text(task.output)

    def view_on_site(self, task: Model) -> str:
        return reverse("task", kwargs={"run_id": task.run_id, "key": task.key})  # type: ignore[attr-defined]  # the row of this page


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin[Attempt]):
    list_display = (
        "id",
        "run",
        "task",
        "number",
        "badge",
        "worker_name",
        "started_at",
        "finished_at",
        "error_code",
    )
    list_select_related = ("run", "task")
    list_filter = ("state",)
    search_fields = ("=worker_name", "=error_code")
    search_help_text = "A run's id (all its attempts), or a worker or error code among recent attempts"
    run_search = "run_id"

    @admin.display(description="state", ordering="state")
    def badge(self, attempt: Attempt) -> SafeString:
        return _badge("attempt", attempt)


@admin.register(AttemptLog)
class AttemptLogAdmin(ReadOnlyAdmin[AttemptLog]):
    list_display = ("at", "level", "run", "attempt", "text_start")
    list_select_related = ("run", "attempt")
    list_filter = (LevelFilter,)
    search_fields = ("text",)
    search_help_text = "A run's id (all its lines), or words among recent lines"
    run_search = "run_id"

    @admin.display(description="text")
    def text_start(self, line: AttemptLog) -> str:
        return line.text[:200]


@admin.register(StateEvent)
class StateEventAdmin(ReadOnlyAdmin[StateEvent]):
    list_display = ("run", "seq", "at", "entity", "key", "from_state", "to_state", "reason", "actor")
    list_select_related = ("run",)
    list_filter = ("entity",)
    search_fields = ("=key", "=actor")
    search_help_text = "A run's id (all its events), or a key or actor among recent events"
    run_search = "run_id"


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin[Workflow]):
    list_display = ("name", "tenant", "latest_version", "created_by", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("tenant",)
    search_fields = ("name",)

    def view_on_site(self, workflow: Model) -> str:
        return reverse("workflow", kwargs={"name": workflow.name})  # type: ignore[attr-defined]  # the row of this page


@admin.register(WorkflowVersion)
class WorkflowVersionAdmin(ReadOnlyAdmin[WorkflowVersion]):
    list_display = ("workflow", "number", "task_count", "source", "created_by", "created_at")
    search_fields = ("workflow__name",)
    long_texts = ("definition",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowVersion]:
        return super().get_queryset(request).select_related("workflow").defer("definition")

    @admin.display(description="definition")
    def definition_shown(self, version: WorkflowVersion) -> str:
        return shown_text(version.definition)


@admin.register(TaskClass)
class TaskClassAdmin(ReadOnlyAdmin[TaskClass]):
    list_display = ("id", "tenant", "executor_kind", "requires")
    list_select_related = ("tenant",)
    list_filter = ("tenant",)
    search_fields = ("executor_kind",)


@admin.register(ReadyQueue)
class ReadyQueueAdmin(ReadOnlyAdmin[ReadyQueue]):
    list_display = ("run", "task_class", "tenant", "ready", "open", "turn_at")
    list_select_related = ("run", "task_class", "tenant")
    list_filter = ("open",)
    search_fields = ("=task_class__executor_kind",)
    search_help_text = "A run's id, or an executor kind"
    run_search = "run_id"
