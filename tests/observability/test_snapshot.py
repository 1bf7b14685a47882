from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from observability import snapshot as module
from observability.metrics import METRICS, timed
from observability.models import MetricsSnapshot
from observability.snapshot import SnapshotCollector, SnapshotPublisher

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Taken:
    queue_depth: Mapping[str, int] = field(default_factory=lambda: {"pending": 3, "leased": 2, "odd": 7})
    tasks: Mapping[str, int] = field(default_factory=lambda: {"running": 2})
    workers: Mapping[str, int] = field(default_factory=lambda: {"active": 4})
    free_slots: int = 5
    active_leases: int = 2
    oldest_pending_seconds: float = 1.5
    leader_epoch: int = 8


def exported() -> dict[tuple[str, tuple[str, ...]], float]:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector())
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_the_coordinator_published_is_exported() -> None:
    publisher = SnapshotPublisher()
    publisher.count_lease_expirations(2)
    publisher.count_lease_expirations(1)
    with timed("reap", publisher.observe):
        pass
    publisher.observe("no such duty", "success", 1.0)
    publisher.publish(Taken())
    found = exported()
    assert found["workload_coordinator_up", ()] == 1
    assert found["workload_queue_depth", ("pending",)] == 3
    assert found["workload_queue_depth", ("unknown",)] == 7
    assert found["workload_tasks", ("running",)] == 2
    assert found["workload_tasks", ("ready",)] == 0, "a state without rows is 0, not absent"
    assert found["workload_workers", ("active",)] == 4
    assert found["workload_worker_free_slots", ()] == 5
    assert found["workload_active_leases", ()] == 2
    assert found["workload_oldest_pending_seconds", ()] == 1.5
    assert found["workload_leader_epoch", ()] == 8
    assert found["workload_lease_expirations_total", ()] == 3
    assert found["workload_coordinator_duty_seconds_count", ("reap", "success")] == 1
    assert found["workload_coordinator_duty_seconds_sum", ("unknown", "success")] == 1
    assert 0 <= found["workload_snapshot_age_seconds", ()] < 10


def test_every_declared_metric_is_exported() -> None:
    SnapshotPublisher().publish(Taken())
    elsewhere = {
        "workload_operation_duration_seconds",
        "workload_db_pool_connections",
        "workload_db_pool_waiting",
    }
    SnapshotPublisher().observe("reap", "success", 0.1)
    names = {name.removesuffix("_count") for name, _ in exported()} | elsewhere
    assert names >= METRICS.keys() - {"workload_coordinator_duty_seconds"}


def test_publishing_and_reading_are_one_statement_each() -> None:
    with CaptureQueriesContext(connection) as captured:
        SnapshotPublisher().publish(Taken())
    assert len(captured) == 1
    collector = SnapshotCollector()
    with CaptureQueriesContext(connection) as captured:
        list(collector.collect())
        list(collector.collect())
    assert len(captured) == 1, "within a second the reading is shared"


def test_there_is_one_row_and_a_former_leader_does_not_overwrite_it() -> None:
    publisher = SnapshotPublisher()
    publisher.publish(Taken())
    publisher.publish(replace(Taken(), leader_epoch=9, free_slots=1))
    publisher.publish(replace(Taken(), leader_epoch=8, free_slots=99))
    assert MetricsSnapshot.objects.get().data["free_slots"] == 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE observability_metricssnapshot SET taken_at = now() - interval '11 seconds'")
    publisher.publish(replace(Taken(), leader_epoch=1, free_slots=99))
    assert MetricsSnapshot.objects.get().data["free_slots"] == 99, "a silent leader's row can be replaced"


def test_without_a_coordinator_it_says_so() -> None:
    assert exported() == {("workload_coordinator_up", ()): 0}
    SnapshotPublisher().publish(Taken())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE observability_metricssnapshot SET taken_at = now() - interval '1 minute'")
    found = exported()
    assert found["workload_coordinator_up", ()] == 0
    assert found["workload_snapshot_age_seconds", ()] >= 60


def test_without_a_database_the_page_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        def cursor(self) -> Any:
            raise OperationalError("gone")

    monkeypatch.setattr(module, "connection", Lost())
    assert exported() == {("workload_coordinator_up", ()): 0}
