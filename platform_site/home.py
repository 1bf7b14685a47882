"""The first page: what needs a person, then how things stand. Composes the queries of several apps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from dispatch.queries import Leader, PendingClass, QueueOverview, leader, queue_overview
from platform_site.console.badges import Shape, Tone
from platform_site.console.formatting import duration, plural, short_id
from platform_site.console.views import ConsoleView
from workflows.queries import RunsOverview, runs_overview
from workflows.queries.overview import FINDINGS

#: A leader writes its beat every few seconds; after this long without one it counts as gone.
LEADER_SILENT_AFTER = timedelta(seconds=15)


_GRAVITY: tuple[Tone, ...] = ("bad", "hold", "wait", "run", "ok", "mute")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for a person: what it is, where to go, or the command that helps."""

    key: str
    tone: Tone
    shape: Shape
    title: str
    text: str
    action: str = ""
    address: str = ""
    command: str = ""


def _at_least(number: int, one: str, many: str) -> str:
    """`3 runs failed`; a list that was cut says so: `100 or more runs failed`."""
    words = plural(number, one, many)
    return words.replace(f"{number:,}", f"{number:,} or more", 1) if number >= FINDINGS else words


def needs(
    *, runs: RunsOverview, queue: QueueOverview, leading: Leader | None, now: datetime
) -> Sequence[Need]:
    """Findings, worst first. Pure."""
    found = [
        *_coordinator_needs(leading, now),
        *_worker_needs(runs, queue, now),
        *_run_needs(runs, now),
    ]
    return sorted(found, key=lambda need: _GRAVITY.index(need.tone))


def _coordinator_needs(leading: Leader | None, now: datetime) -> Iterator[Need]:
    command = "python manage.py coordinator"
    if leading is None or leading.beat_at is None:
        text = "Nothing is queued or recovered until one runs."
        yield Need("leader", "bad", "cross", "No coordinator leads", text, command=command)
    elif now - leading.beat_at > LEADER_SILENT_AFTER:
        text = f"{leading.holder} was last heard of {duration(now - leading.beat_at)} ago. Start one:"
        yield Need("leader", "bad", "cross", "The coordinator is silent", text, command=command)


def _worker_needs(runs: RunsOverview, queue: QueueOverview, now: datetime) -> Iterator[Need]:
    if not queue.active and (queue.pending or runs.ready_tasks):
        waiting = plural(queue.pending + runs.ready_tasks, "task waits", "tasks wait")
        yield Need(
            "workers", "bad", "cross", "No worker is active", f"{waiting}.", command="python manage.py worker"
        )
    else:
        yield from (_stuck_class(each, now) for each in queue.classes if not each.offered)
    if queue.lost:
        title = plural(len(queue.lost), "worker went offline", "workers went offline")
        last = queue.lost[0]
        text = f"{last.display_name} was last heard of {duration(now - last.last_heartbeat_at)} ago; "
        text += "its tasks go to others."
        yield Need("lost", "wait", "clock", title, text, "Show workers", reverse("workers"))


def _stuck_class(each: PendingClass, now: datetime) -> Need:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(each.requires.items()))
    wanted = f"kind {each.executor_kind}" + (f" with {labels}" if labels else "")
    return Need(
        f"class-{wanted}",
        "bad",
        "cross",
        plural(each.pending, "task has no worker", "tasks have no worker"),
        f"No active worker takes {wanted}; the oldest waits for {duration(now - each.oldest_at)}.",
        "Show workers",
        reverse("workers"),
    )


def _run_needs(runs: RunsOverview, now: datetime) -> Iterator[Need]:
    if runs.failed:
        last = runs.failed[0]
        when = "" if last.finished_at is None else f" {duration(now - last.finished_at)} ago"
        yield Need(
            "failed",
            "bad",
            "cross",
            _at_least(len(runs.failed), "run failed in the last day", "runs failed in the last day"),
            f"latest: {last.workflow} {short_id(last.id)},{when}",
            "Show run" if len(runs.failed) == 1 else "Show failed runs",
            reverse("run", kwargs={"run_id": last.id})
            if len(runs.failed) == 1
            else reverse("runs") + "?state=failed",
        )
    if runs.approval_waits:
        oldest = runs.approval_waits[-1]
        yield Need(
            "approvals",
            "hold",
            "bars",
            _at_least(len(runs.approval_waits), "run needs approval", "runs need approval"),
            f"oldest: {oldest.workflow} {short_id(oldest.id)}",
            "Show run",
            reverse("run", kwargs={"run_id": oldest.id}),
        )
    if runs.stalled:
        oldest = runs.stalled[-1]
        age = duration(now - oldest.created_at)
        yield Need(
            "stalled",
            "wait",
            "clock",
            _at_least(len(runs.stalled), "run makes no progress", "runs make no progress"),
            f"{oldest.workflow} {short_id(oldest.id)}, {age} old: nothing of it runs",
            "Why?",
            reverse("run", kwargs={"run_id": oldest.id}),
        )


class OverviewView(ConsoleView):
    """The first page."""

    section = "overview"
    template_name = "console/overview.html"
    fragment_name = "console/_overview_live.html"

    def page_context(self) -> dict[str, Any]:
        runs = runs_overview(tenant_id=self.tenant_id, now=self.now)
        queue = queue_overview(tenant_id=self.tenant_id, now=self.now)
        leading = leader()
        return {
            "runs": runs,
            "queue": queue,
            "leader": leading,
            "needs": needs(runs=runs, queue=queue, leading=leading, now=self.now),
        }


def leading_coordinator(request: HttpRequest) -> dict[str, Any]:  # noqa: ARG001 - a context processor's signature
    """Context processor: `leader` for the foot of the navigation, read only where a template shows it."""
    return {"leader": SimpleLazyObject(leader)}
