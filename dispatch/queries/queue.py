"""The queue against the slots that could take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min

from dispatch.compatibility import ClassFacts, accepts
from dispatch.models import Dispatch
from dispatch.queries.fleet import LIVE, MAX_LIVE, WorkerRow, leases_by_worker, visible, worker_rows
from dispatch.states import DispatchState, WorkerState

#: Workers that registered latest, among which lost ones are looked for.
_LOST_AMONG = 50


@dataclass(frozen=True, slots=True)
class PendingClass:
    """Tasks that wait for the same kind of worker. `offered` counts active workers that could take them,
    `free_slots` what those have free."""

    executor_kind: str
    requires: Mapping[str, str]
    pending: int
    oldest_at: datetime
    offered: int
    free_slots: int


@dataclass(frozen=True, slots=True)
class SlotGroup:
    """Live workers that take the same kinds, and their slots."""

    executor_kinds: tuple[str, ...]
    workers: int
    used: int
    slots: int


@dataclass(frozen=True, slots=True)
class QueueOverview:
    """Depth and age of the queue, who could take it, and workers lost lately (newest first)."""

    pending: int
    leased: int
    oldest_at: datetime | None
    classes: tuple[PendingClass, ...]
    groups: tuple[SlotGroup, ...]
    active: int
    draining: int
    lost: tuple[WorkerRow, ...]

    @property
    def used(self) -> int:
        return sum(group.used for group in self.groups)

    @property
    def slots(self) -> int:
        return sum(group.slots for group in self.groups)


def queue_overview(
    *, tenant_id: int, now: datetime, lost_within: timedelta = timedelta(hours=1)
) -> QueueOverview:
    """Four statements; their cost follows what is open now and not the history."""
    held = leases_by_worker()
    workers = visible(tenant_id)
    live = worker_rows(workers.filter(state__in=LIVE).order_by("display_name", "id"), MAX_LIVE, held)
    latest = worker_rows(workers.order_by("-registered_at", "-id"), _LOST_AMONG, held)
    classes = _pending_classes(tenant_id, live)
    return QueueOverview(
        pending=sum(each.pending for each in classes),
        leased=sum(worker.active_leases for worker in live),
        oldest_at=min((each.oldest_at for each in classes), default=None),
        classes=classes,
        groups=slot_groups(live),
        active=sum(worker.state is WorkerState.ACTIVE for worker in live),
        draining=sum(worker.state is WorkerState.DRAINING for worker in live),
        lost=tuple(
            worker
            for worker in latest
            if worker.state is WorkerState.OFFLINE and worker.last_heartbeat_at >= now - lost_within
        ),
    )


def _pending_classes(tenant_id: int, live: Sequence[WorkerRow]) -> tuple[PendingClass, ...]:
    rows = (
        Dispatch.objects.filter(state=DispatchState.PENDING, task_class__tenant_id=tenant_id)
        .order_by()
        .values_list("task_class_id", "task_class__executor_kind", "task_class__requires")
        .annotate(pending=Count("id"), oldest_at=Min("created_at"))
    )
    active = [worker for worker in live if worker.state is WorkerState.ACTIVE]
    classes = []
    for class_id, kind, requires, pending, oldest_at in rows:
        facts = ClassFacts(class_id, tenant_id, kind, requires)
        takers = [worker for worker in active if accepts(worker.acceptor, facts)]
        classes.append(
            PendingClass(
                kind, requires, pending, oldest_at, len(takers), sum(worker.free_slots for worker in takers)
            )
        )
    return tuple(sorted(classes, key=lambda each: (each.oldest_at, each.executor_kind)))


def slot_groups(workers: Iterable[WorkerRow]) -> tuple[SlotGroup, ...]:
    """Live workers grouped by the kinds they take, largest group first. Pure."""
    groups: dict[tuple[str, ...], list[WorkerRow]] = {}
    for worker in workers:
        groups.setdefault(tuple(sorted(worker.executor_kinds)), []).append(worker)
    found = [
        SlotGroup(
            kinds,
            len(members),
            sum(worker.active_leases for worker in members),
            sum(worker.max_concurrency for worker in members),
        )
        for kinds, members in groups.items()
    ]
    return tuple(sorted(found, key=lambda group: (-group.slots, group.executor_kinds)))
