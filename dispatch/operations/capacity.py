"""How much may be queued now: by class, by tenant and in all. Read once per batch, decided in Python.

Pending of a class never exceeds the slots of the pools that accept it, all pending never exceeds all slots
(each worker counted once), and pending and leased together never exceed the dispatch limit. A class without
room, or without a pool that accepts it, is left out before any run is looked at, so nothing blocks behind it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dispatch.compatibility import Acceptor, ClassFacts, accepts
from dispatch.statements import sql
from platform_site.statements import Batch

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Pool:
    """Active workers that are alike, and their slots together."""

    acceptor: Acceptor
    slots: int


@dataclass(frozen=True, slots=True)
class ClassLoad:
    """A class, what is pending of it, and whether an open run has something ready of it."""

    facts: ClassFacts
    pending: int
    ready: bool


@dataclass(frozen=True, slots=True)
class Load:
    """What waits and what is held, all tenants together."""

    classes: list[ClassLoad]
    leased: int
    quotas: bool


@dataclass(frozen=True, slots=True)
class Capacity:
    """The answer: room per class that has work and room, room in all, and tenants with quotas."""

    rooms: dict[int, int]
    total: int
    tenant_rooms: dict[int, int]

    @property
    def full_tenants(self) -> list[int]:
        return [tenant_id for tenant_id, room in self.tenant_rooms.items() if room <= 0]


def read_demand() -> tuple[list[Pool], Load]:
    """The pools of active workers; every class with something ready or pending, and the totals. One round trip."""
    batch = Batch()
    live, open_ = batch.add(sql, "live_pools"), batch.add(sql, "open_classes")
    batch.run()
    pools = [
        Pool(Acceptor(frozenset(kinds), tenant_id, json.loads(labels)), int(slots))
        for kinds, tenant_id, labels, slots in live.rows
    ]
    classes = [
        ClassLoad(ClassFacts.from_row(class_id, tenant_id, kind, requires), pending, ready)
        for class_id, tenant_id, kind, requires, pending, ready, _, _ in open_.rows
    ]
    leased, quotas = open_.rows[0][6:8] if open_.rows else (0, False)
    return pools, Load(classes=classes, leased=leased, quotas=quotas)


def measure(pools: Sequence[Pool], load: Load, *, dispatch_limit: int) -> Capacity:
    """What may be queued now. One statement if tenants have quotas, else none."""
    rooms = {}
    for one in load.classes:
        slots = sum(pool.slots for pool in pools if accepts(pool.acceptor, one.facts))
        if one.ready and slots > one.pending:
            rooms[one.facts.id] = slots - one.pending
    if not rooms:
        return Capacity({}, 0, {})
    pending = sum(one.pending for one in load.classes)
    total = min(dispatch_limit - pending - load.leased, sum(pool.slots for pool in pools) - pending)
    return Capacity(rooms, max(total, 0), _tenant_rooms() if load.quotas else {})


def orphaned(pools: Sequence[Pool], load: Load) -> list[int]:
    """Classes with something pending that no pool accepts."""
    return [
        one.facts.id
        for one in load.classes
        if one.pending and not any(accepts(pool.acceptor, one.facts) for pool in pools)
    ]


def _tenant_rooms() -> dict[int, int]:
    rooms = {}
    for tenant_id, max_running, max_queued, queued, running in sql.rows("tenant_load"):
        by_running = UNLIMITED if max_running is None else max_running - queued - running
        by_queued = UNLIMITED if max_queued is None else max_queued - queued
        rooms[tenant_id] = max(min(by_running, by_queued), 0)
    return rooms
