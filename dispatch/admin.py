"""Workers, dispatches and leadership in the admin: to look at and to search. Nothing here writes a state."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from dispatch.models import Dispatch, Leadership, Liveness, Worker
from platform_site.console.admin_base import BoundedInline, ReadOnlyAdmin
from platform_site.console.templatetags.console import state_badge


class DispatchInline(BoundedInline[Dispatch, Worker]):
    model = Dispatch
    verbose_name_plural = "dispatches (the latest 50)"
    fields = ("id", "state", "task_key", "attempt_number", "leased_at", "lease_expires_at", "finished_at")
    ordering = ("-leased_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dispatch]:
        return super().get_queryset(request).select_related("task")

    @admin.display(description="task")
    def task_key(self, dispatch: Dispatch) -> str:
        return dispatch.task.key


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin[Worker]):
    list_display = (
        "display_name",
        "badge",
        "executor_kinds",
        "max_concurrency",
        "drills",
        "last_heartbeat_at",
        "registered_at",
    )
    list_filter = ("state", "drills")
    search_fields = ("display_name",)
    search_help_text = "A worker's id, or part of its name"
    inlines = (DispatchInline,)

    @admin.display(description="state", ordering="state")
    def badge(self, worker: Worker) -> SafeString:
        return state_badge("worker", worker.state)


@admin.register(Dispatch)
class DispatchAdmin(ReadOnlyAdmin[Dispatch]):
    list_display = (
        "id",
        "badge",
        "run",
        "task",
        "worker",
        "attempt_number",
        "created_at",
        "leased_at",
        "finished_at",
    )
    list_select_related = ("run", "task", "worker")
    list_filter = ("state",)
    search_fields = ("=worker__display_name",)
    search_help_text = "A run's id (all its dispatches), or a worker's name among recent dispatches"
    run_search = "run_id"

    @admin.display(description="state", ordering="state")
    def badge(self, dispatch: Dispatch) -> SafeString:
        return state_badge("dispatch", dispatch.state)


@admin.register(Leadership)
class LeadershipAdmin(ReadOnlyAdmin[Leadership]):
    list_display = ("holder", "epoch", "since", "beat_at", "backend_pid")


@admin.register(Liveness)
class LivenessAdmin(ReadOnlyAdmin[Liveness]):
    list_display = ("since", "seen_at")
