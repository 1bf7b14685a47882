"""Pages of runs, tasks and workflows: parse, one call, present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from platform_site.access.roles import Role
from platform_site.console.views import ConsoleView, with_query
from workflows import queries
from workflows.console.waiting import run_reasons, task_reason
from workflows.errors import RunNotFound
from workflows.kernel.states import AttemptState, RunState, TaskState
from workflows.operations.request_cancel import request_cancel

T = TypeVar("T")

#: What is done first, what has not begun last: the order of the progress bar.
TALLY_ORDER = (
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.SKIPPED,
    TaskState.CANCELED,
    TaskState.RUNNING,
    TaskState.WAITING_RETRY,
    TaskState.QUEUED,
    TaskState.WAITING_APPROVAL,
    TaskState.READY,
    TaskState.WAITING_DEPENDENCIES,
)

#: What a page shows of a text that may be megabytes; the API gives the whole.
SHOWN_CHARACTERS = 65_536
#: The latest attempts of a run that its page lists; a task's page has all of its own.
SHOWN_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that narrows a list to a state."""

    label: str
    query: str
    current: bool


def found(value: T | None, what: str) -> T:
    """`value`, or Http404 naming what is missing."""
    if value is None:
        raise Http404(f"There is no such {what}.")
    return value


def _state(enum: type[T], text: str) -> T | None:
    try:
        return enum(text) if text else None  # type: ignore[call-arg]  # an enum takes its value
    except ValueError as error:
        raise BadRequest(f"{text!r} is no state.") from error


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 18:
        raise BadRequest("Expected a number.")
    return int(text)


def _shown(text: str | None) -> tuple[str, bool]:
    """The part of a text that a page shows, and whether it was cut."""
    return (text or "")[:SHOWN_CHARACTERS], len(text or "") > SHOWN_CHARACTERS


class RunListView(ConsoleView):
    """Runs, newest first. A poll reads the rows shown again; newer ones are offered, never pushed in."""

    section = "runs"
    template_name = "console/workflows/runs.html"
    fragment_name = "console/workflows/_runs_live.html"

    def page_context(self) -> dict[str, Any]:
        asked = self.request.GET
        state = _state(RunState, asked.get("state", ""))
        filters = queries.RunFilters(
            states=frozenset() if state is None else frozenset({state}),
            workflow=asked.get("workflow", "").strip(),
        )
        try:
            page = queries.list_runs(
                tenant_id=self.tenant_id, filters=filters, cursor=asked.get("at") or None, limit=50
            )
        except queries.CursorInvalid as error:
            raise BadRequest(str(error)) from error
        return {
            "page": page,
            "filters": filters,
            "choices": self._choices(state),
            "here": with_query(self.request, at=page.here),
            "older": with_query(self.request, at=page.older),
            "newer": with_query(self.request, at=page.newer),
            "newest": with_query(self.request, at=None),
            "live": any(not run.terminal for run in page.rows) or not asked.get("at"),
        }

    def _choices(self, current: RunState | None) -> Sequence[Choice]:
        every = Choice("All", with_query(self.request, state=None, at=None), current is None)
        return [
            every,
            *(
                Choice(state.value, with_query(self.request, state=state.value, at=None), state is current)
                for state in RunState
            ),
        ]


class RunView(ConsoleView):
    """One run. Tab and place are in the address, so that a poll and a reload show the same."""

    section = "runs"
    template_name = "console/workflows/run.html"
    fragment_name = "console/workflows/_run_live.html"

    def page_context(self) -> dict[str, Any]:
        run_id: UUID = self.kwargs["run_id"]
        run = found(queries.run_detail(tenant_id=self.tenant_id, run_id=run_id), "run")
        tab = self.request.GET.get("tab", "tasks")
        parts = {
            "tasks": self._tasks,
            "attempts": self._attempts,
            "events": self._events,
            "params": self._params,
        }
        if tab not in parts:
            raise BadRequest(f"{tab!r} is no tab of a run.")
        retries: tuple[queries.TaskRow, ...] = ()
        if run.counts[TaskState.WAITING_RETRY]:
            retries = queries.next_retries(tenant_id=self.tenant_id, run_id=run_id)
        return {
            "run": run,
            "tab": tab,
            "here": with_query(self.request),
            "tallies": [(state, run.counts[state]) for state in TALLY_ORDER if run.counts[state]],
            "reasons": run_reasons(run, retries, self.now),
            **parts[tab](run),
        }

    def _tasks(self, run: queries.RunDetail) -> dict[str, Any]:
        state = _state(TaskState, self.request.GET.get("state", ""))
        try:
            page = queries.run_tasks(
                tenant_id=self.tenant_id,
                run_id=run.id,
                states=frozenset() if state is None else frozenset({state}),
                cursor=self.request.GET.get("at") or None,
            )
        except queries.CursorInvalid as error:
            raise BadRequest(str(error)) from error
        return {
            "tasks": page,
            "state": state,
            "shown_state": state,
            "shown_of": run.tasks_total if state is None else run.counts[state],
            "next": with_query(self.request, at=page.next),
            "previous": with_query(self.request, at=page.previous),
        }

    def _attempts(self, run: queries.RunDetail) -> dict[str, Any]:
        state = _state(AttemptState, self.request.GET.get("state", ""))
        every = Choice("all", with_query(self.request, state=None), state is None)
        each = [
            Choice(known.value, with_query(self.request, state=known.value), state is known)
            for known in AttemptState
        ]
        return {
            "attempts": queries.run_attempts(
                tenant_id=self.tenant_id,
                run_id=run.id,
                states=frozenset() if state is None else frozenset({state}),
                limit=SHOWN_ATTEMPTS,
            ),
            "choices": [every, *each],
            "bound": SHOWN_ATTEMPTS,
        }

    def _events(self, run: queries.RunDetail) -> dict[str, Any]:
        """Newest first, from what was newest when the page came: later ones are counted, not pushed in."""
        before = _number(self.request.GET.get("before"))
        seen = run.event_seq if before is None else before - 1
        page = queries.run_events(tenant_id=self.tenant_id, run_id=run.id, before=seen + 1)
        last = page.rows[-1].seq if page.rows else 0
        return {
            "events": page.rows,
            "newer_events": max(run.event_seq - seen, 0),
            "here": with_query(self.request, before=str(seen + 1)),
            "newest": with_query(self.request, before=None),
            "older": with_query(self.request, before=str(last)) if page.more else "",
        }

    def _params(self, run: queries.RunDetail) -> dict[str, Any]:
        text = queries.run_params(tenant_id=self.tenant_id, run_id=run.id)
        params, cut = _shown(text)
        return {"params": params, "params_cut": cut}


class CancelRunView(ConsoleView):
    """Asks before it cancels: a page of its own, so that it works with a keyboard, a phone and no script."""

    section = "runs"
    needed_role = Role.OPERATOR
    template_name = "console/workflows/cancel.html"

    def page_context(self) -> dict[str, Any]:
        run = queries.run_detail(tenant_id=self.tenant_id, run_id=self.kwargs["run_id"])
        return {"run": found(run, "run")}

    def post(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        try:
            (answer,) = request_cancel(run_ids=[run_id], tenant_id=self.tenant_id, actor=self.actor)
        except RunNotFound as error:
            raise Http404 from error
        if answer.requested:
            messages.success(request, "Cancel asked for. What still runs is being stopped.")
        elif answer.state.terminal:
            messages.info(request, f"Nothing to cancel: the run has {answer.state}.")
        else:
            messages.info(request, "Its cancel was asked for before; what still runs is being stopped.")
        return redirect("run", run_id=run_id)


class TaskView(ConsoleView):
    """One task with its attempts, logs and output."""

    section = "runs"
    template_name = "console/workflows/task.html"
    fragment_name = "console/workflows/_task_live.html"

    def page_context(self) -> dict[str, Any]:
        where = {"tenant_id": self.tenant_id, "run_id": self.kwargs["run_id"]}
        run = found(queries.run_detail(**where), "run")
        task = found(queries.task_detail(**where, key=self.kwargs["key"]), "task")
        return {
            "run": run,
            "task": task,
            "why": task_reason(task, self.now),
            "more_dependencies": task.dependency_count - len(task.dependencies),
            "here": reverse("task", kwargs={"run_id": run.id, "key": task.key}),
        }


class WorkflowListView(ConsoleView):
    """Workflows by name, each with its latest run."""

    section = "workflows"
    template_name = "console/workflows/workflows.html"

    def page_context(self) -> dict[str, Any]:
        try:
            page = queries.list_workflows(tenant_id=self.tenant_id, cursor=self.request.GET.get("at") or None)
        except queries.CursorInvalid as error:
            raise BadRequest(str(error)) from error
        return {"page": page, "next": with_query(self.request, at=page.next)}


class WorkflowView(ConsoleView):
    """One workflow: its versions and its latest runs."""

    section = "workflows"
    template_name = "console/workflows/workflow.html"

    def page_context(self) -> dict[str, Any]:
        where = {"tenant_id": self.tenant_id, "name": self.kwargs["name"]}
        workflow = found(queries.workflow_detail(**where), "workflow")
        versions = queries.workflow_versions(**where, before=_number(self.request.GET.get("before")))
        filters = queries.RunFilters(workflow=workflow.name)
        runs = queries.list_runs(tenant_id=self.tenant_id, filters=filters, limit=10)
        older = str(versions.older) if versions.older else None
        return {
            "workflow": workflow,
            "versions": versions,
            "runs": runs.rows,
            "older": with_query(self.request, before=older) if older else "",
        }


class VersionView(ConsoleView):
    """One published definition as it is stored."""

    section = "workflows"
    template_name = "console/workflows/version.html"

    def page_context(self) -> dict[str, Any]:
        name, number = self.kwargs["name"], self.kwargs["number"]
        version, text = found(
            queries.version_definition(tenant_id=self.tenant_id, name=name, number=number), "version"
        )
        definition, cut = _shown(text)
        return {"name": name, "version": version, "definition": definition, "definition_cut": cut}
