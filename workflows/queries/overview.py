"""What the first page asks of the run history: what is new, what failed, what stands still."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from workflows.kernel.states import RunState
from workflows.models import ReadyQueue, Run
from workflows.queries.runs import RunRow, run_rows

#: Lists of findings are cut here; a page then says "100 or more" instead of counting on.
FINDINGS = 100
_OPEN = (RunState.PENDING.value, RunState.RUNNING.value)


@dataclass(frozen=True, slots=True)
class RunsOverview:
    """`failed` and `stalled` are at most FINDINGS long, newest first; so is `approval_waits`."""

    recent: tuple[RunRow, ...]
    failed: tuple[RunRow, ...]
    stalled: tuple[RunRow, ...]
    approval_waits: tuple[RunRow, ...]
    ready_tasks: int


def runs_overview(
    *,
    tenant_id: int,
    now: datetime,
    recent: int = 8,
    failed_within: timedelta = timedelta(hours=24),
    stalled_after: timedelta = timedelta(minutes=1),
) -> RunsOverview:
    """Recent runs, runs that failed lately, runs that stand still though they have work. Five statements.

    A run stands still when tasks of it could run, none does, and none was dispatched for `stalled_after`.
    """
    runs = Run.objects.filter(tenant_id=tenant_id)
    opened = _newest(runs.filter(state__in=_OPEN))
    stalled = (
        opened.annotate(moved_at=Coalesce("last_dispatched_at", "created_at"))
        .filter(moved_at__lt=now - stalled_after, tasks_running=0, cancel_requested_at__isnull=True)
        .filter(Q(tasks_ready__gt=0) | Q(tasks_queued__gt=0))
    )
    failed = _newest(runs.filter(state=RunState.FAILED.value, created_at__gte=now - failed_within))
    ready = ReadyQueue.objects.filter(tenant_id=tenant_id, ready__gt=0).aggregate(total=Sum("ready"))
    return RunsOverview(
        recent=tuple(run_rows(_newest(runs), recent)),
        failed=tuple(run_rows(failed, FINDINGS)),
        stalled=tuple(run_rows(stalled, FINDINGS)),
        approval_waits=tuple(run_rows(opened.filter(tasks_waiting_approval__gt=0), FINDINGS)),
        ready_tasks=ready["total"] or 0,
    )


def _newest(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.order_by("-created_at", "-id")
