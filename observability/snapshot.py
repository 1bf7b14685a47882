"""What the coordinator measures reaches `/metrics` of the web processes through one row.

The coordinator calls `SnapshotPublisher.publish(snapshot)` after a pass. A web process that is scraped reads
the row at most once a second, whoever asks how often, and measures nothing. Without a database the page still
comes, without these values and with `workload_coordinator_up 0`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.db import Error, connection
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from observability.metrics import METRICS, OPERATIONS, OUTCOMES, allowed
from observability.statements import READ_SNAPSHOT, STORE_SNAPSHOT

logger = logging.getLogger(__name__)

FRESH_FOR_SECONDS = 1.0
UP_FOR_SECONDS = 15.0

_GAUGES_BY_STATE = {
    "queue_depth": "workload_queue_depth",
    "tasks": "workload_tasks",
    "workers": "workload_workers",
}
_PLAIN_GAUGES = {
    "free_slots": "workload_worker_free_slots",
    "active_leases": "workload_active_leases",
    "oldest_pending_seconds": "workload_oldest_pending_seconds",
    "leader_epoch": "workload_leader_epoch",
}


class Snapshot(Protocol):
    """What the coordinator hands in; a frozen dataclass of its own satisfies it by shape."""

    @property
    def queue_depth(self) -> Mapping[str, int]: ...  # dispatch state -> count: pending, leased
    @property
    def tasks(self) -> Mapping[str, int]: ...  # task state -> count, in runs that have not ended
    @property
    def workers(self) -> Mapping[str, int]: ...  # worker state -> count
    @property
    def free_slots(self) -> int: ...
    @property
    def active_leases(self) -> int: ...
    @property
    def oldest_pending_seconds(self) -> float: ...  # 0 when nothing is pending
    @property
    def leader_epoch(self) -> int: ...


class SnapshotPublisher:
    """Keeps the coordinator's running totals and writes them with each snapshot.

    One coordinator thread uses it. The totals begin at zero with the process, as counters may.
    """

    def __init__(self) -> None:
        self._lease_expirations = 0
        self._duties: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one duty; fits `metrics.timed(..., observe=publisher.observe)`."""
        entry = self._duties[allowed(operation, OPERATIONS), allowed(outcome, OUTCOMES)]
        entry[0] += 1
        entry[1] += seconds

    def count_lease_expirations(self, count: int) -> None:
        self._lease_expirations += count

    def publish(self, snapshot: Snapshot) -> None:
        """Write the row: one statement, in no transaction of the caller. Raises what the database raises."""
        data = {
            **{name: dict(getattr(snapshot, name)) for name in _GAUGES_BY_STATE},
            **{name: getattr(snapshot, name) for name in _PLAIN_GAUGES},
            "lease_expirations": self._lease_expirations,
            "duties": [[*labels, *totals] for labels, totals in sorted(self._duties.items())],
        }
        with connection.cursor() as cursor:
            cursor.execute(STORE_SNAPSHOT, {"data": json.dumps(data)})


@dataclass(frozen=True, slots=True)
class _Reading:
    data: Mapping[str, Any]
    age_seconds: float


def read_snapshot() -> _Reading | None:
    """The row and its age; None if no coordinator ever wrote one, or the database cannot be asked."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(READ_SNAPSHOT)
            row = cursor.fetchone()
    except Error as failed:
        logger.warning("The metrics snapshot cannot be read: %s", type(failed).__name__)
        return None
    if row is None:
        return None
    data = json.loads(row[0]) if isinstance(row[0], str) else row[0]
    return _Reading(data=data, age_seconds=float(row[1]))


class SnapshotCollector(Collector):
    """Exports the row; reads it again when the last reading is a second old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._read_at: float | None = None

    def describe(self) -> Iterable[Metric]:
        return []  # registering must not read the database

    def collect(self) -> Iterable[Metric]:
        reading, waited = self._current()
        age = reading.age_seconds + waited if reading is not None else None
        yield _gauge("workload_coordinator_up", age is not None and age <= UP_FOR_SECONDS)
        if reading is None or age is None:
            return
        yield _gauge("workload_snapshot_age_seconds", age)
        yield from _families(reading.data)

    def _current(self) -> tuple[_Reading | None, float]:
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= FRESH_FOR_SECONDS:
                self._reading = read_snapshot()
                self._read_at = now = time.monotonic()
            return self._reading, now - self._read_at


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, METRICS[name].meaning, value=float(value))


def _families(data: Mapping[str, Any]) -> Iterable[Metric]:
    for field, name in _GAUGES_BY_STATE.items():
        states = METRICS[name].labels["state"]
        family = GaugeMetricFamily(name, METRICS[name].meaning, labels=["state"])
        counts: dict[str, float] = dict.fromkeys(sorted(states), 0.0)
        for state, count in data.get(field, {}).items():
            label = allowed(state, states)
            counts[label] = counts.get(label, 0.0) + count
        for state, count in counts.items():
            family.add_metric([state], count)
        yield family
    for field, name in _PLAIN_GAUGES.items():
        yield _gauge(name, data.get(field, 0))
    expirations = "workload_lease_expirations_total"
    yield CounterMetricFamily(
        expirations, METRICS[expirations].meaning, value=data.get("lease_expirations", 0)
    )
    duties = "workload_coordinator_duty_seconds"
    summary = SummaryMetricFamily(duties, METRICS[duties].meaning, labels=["operation", "outcome"])
    for operation, outcome, count, seconds in data.get("duties", []):
        labels = [allowed(operation, OPERATIONS), allowed(outcome, OUTCOMES)]
        summary.add_metric(labels, count_value=count, sum_value=seconds)
    yield summary
