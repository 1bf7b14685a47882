"""Workers, and who leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from dispatch.compatibility import Acceptor
from dispatch.models import Dispatch, Leadership, Worker
from dispatch.states import DispatchState, WorkerState
from platform_site.api.pagination import Key, Keyset, Page

#: More live workers than this are not listed one by one.
MAX_LIVE = 500
LIVE = (WorkerState.ACTIVE.value, WorkerState.DRAINING.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """One start of one worker process. `active_leases` is what it holds now."""

    id: UUID
    display_name: str
    state: WorkerState
    executor_kinds: tuple[str, ...]
    labels: Mapping[str, str]
    max_concurrency: int
    active_leases: int
    protocol_version: int
    drills: bool
    for_one_tenant: bool
    registered_at: datetime
    last_heartbeat_at: datetime
    stopped_at: datetime | None

    @property
    def acceptor(self) -> Acceptor:
        """What it offers a tenant that sees it: rows are narrowed to those that may serve the tenant."""
        return Acceptor(frozenset(self.executor_kinds), None, self.labels)

    @property
    def free_slots(self) -> int:
        return max(self.max_concurrency - self.active_leases, 0) if self.state is WorkerState.ACTIVE else 0


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """Live workers by name, and those that ended, latest first; `more_...` says that it was cut."""

    live: tuple[WorkerRow, ...]
    gone: tuple[WorkerRow, ...]
    more_live: bool
    more_gone: bool


@dataclass(frozen=True, slots=True)
class Leader:
    """Which coordinator leads, under which epoch, since when, and when it was last heard of."""

    holder: str
    epoch: int
    since: datetime | None
    beat_at: datetime | None


_COLUMNS = (
    "id",
    "display_name",
    "state",
    "executor_kinds",
    "labels",
    "max_concurrency",
    "protocol_version",
    "drills",
    "tenant_id",
    "registered_at",
    "last_heartbeat_at",
    "stopped_at",
)


def visible(tenant_id: int | None) -> QuerySet[Worker]:
    """Workers that may serve a tenant: its own and those of all. None: only those of all."""
    return Worker.objects.filter(Q(tenant_id=tenant_id) | Q(tenant_id__isnull=True))


def leases_by_worker() -> dict[UUID, int]:
    """How many leases each worker holds. One statement, whose cost follows the leases and not the history."""
    return dict(
        Dispatch.objects.filter(state=DispatchState.LEASED)
        .order_by()
        .values_list("worker_id")
        .annotate(held=Count("id"))
    )


def worker_rows(workers: QuerySet[Worker], limit: int, held: Mapping[UUID, int]) -> list[WorkerRow]:
    """The first `limit` of `workers` as rows: one statement."""
    return [_row(values, held) for values in workers.values(*_COLUMNS)[:limit]]


def _row(values: Mapping[str, Any], held: Mapping[UUID, int]) -> WorkerRow:
    facts = {name: values[name] for name in _COLUMNS if name != "tenant_id"}
    facts["state"] = WorkerState(values["state"])
    facts["executor_kinds"] = tuple(values["executor_kinds"])
    return WorkerRow(
        **facts,
        active_leases=held.get(values["id"], 0),
        for_one_tenant=values["tenant_id"] is not None,
    )


def list_workers(*, tenant_id: int, gone_limit: int = 20) -> WorkerPage:
    """The fleet of a tenant. Three statements."""
    held = leases_by_worker()
    workers = visible(tenant_id)
    live = worker_rows(workers.filter(state__in=LIVE).order_by("display_name", "id"), MAX_LIVE + 1, held)
    gone = worker_rows(
        workers.exclude(state__in=LIVE).order_by("-registered_at", "-id"), gone_limit + 1, held
    )
    return WorkerPage(
        tuple(live[:MAX_LIVE]), tuple(gone[:gone_limit]), len(live) > MAX_LIVE, len(gone) > gone_limit
    )


WORKERS = Keyset(
    "workers", [Key("registered_at", datetime, descending=True), Key("id", UUID, descending=True)]
)


def workers_page(
    *,
    tenant_id: int,
    states: frozenset[WorkerState] = frozenset(),
    cursor: str | None = None,
    limit: int = 50,
) -> Page[WorkerRow]:
    """Every worker there was, latest registered first. Raises InvalidCursor. Two statements."""
    workers = visible(tenant_id)
    if states:
        workers = workers.filter(state__in=sorted(states))
    filters = {"tenant": tenant_id, "states": sorted(states)}
    page = WORKERS.page(workers.values(*_COLUMNS), limit=limit, cursor=cursor, filters=filters)
    held = leases_by_worker()
    return page.map(lambda values: _row(values, held))


def worker_detail(*, tenant_id: int | None, worker_id: UUID) -> WorkerRow | None:
    """One worker; None when it is not there or serves another tenant only. Two statements."""
    found = worker_rows(visible(tenant_id).filter(id=worker_id), 1, leases_by_worker())
    return found[0] if found else None


def leader() -> Leader | None:
    """The coordinator that leads, or led last; None when none ever did. One statement."""
    found = Leadership.objects.filter(id=1).values("holder", "epoch", "since", "beat_at").first()
    if found is None or not found["holder"]:
        return None
    return Leader(**found)
