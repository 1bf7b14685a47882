from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from prometheus_client.core import Metric

from observability.pool import PoolCollector

WRAPPER = type(connections["default"])


class Pool:
    def get_stats(self) -> dict[str, int]:
        return {"pool_size": 7, "pool_available": 5, "requests_waiting": 3}


def samples(families: list[Metric]) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_pool_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = connections["default"].settings_dict["OPTIONS"]
    monkeypatch.setitem(options, "pool", {"max_size": 9})
    monkeypatch.setattr(WRAPPER, "pool", Pool())
    assert samples(list(PoolCollector().collect())) == {
        ("workload_db_pool_connections", ("idle",)): 5,
        ("workload_db_pool_connections", ("in_use",)): 2,
        ("workload_db_pool_waiting", ()): 3,
    }


def test_a_process_without_a_pool_exports_none() -> None:
    assert list(PoolCollector().collect()) == []
