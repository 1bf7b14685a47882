"""The connection pool of this process, as it stands when it is asked."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import DEFAULT_DB_ALIAS, connections
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from observability.metrics import METRICS


class PoolCollector(Collector):
    """Nothing where the process does not pool; reading the figures opens no connection."""

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        if not connections[DEFAULT_DB_ALIAS].settings_dict["OPTIONS"].get("pool"):
            return
        stats = connections[DEFAULT_DB_ALIAS].pool.get_stats()  # type: ignore[attr-defined] # PostgreSQL's own
        idle = stats.get("pool_available", 0)
        name = "workload_db_pool_connections"
        family = GaugeMetricFamily(name, METRICS[name].meaning, labels=["state"])
        family.add_metric(["idle"], idle)
        family.add_metric(["in_use"], stats.get("pool_size", 0) - idle)
        yield family
        waiting = "workload_db_pool_waiting"
        yield GaugeMetricFamily(waiting, METRICS[waiting].meaning, value=stats.get("requests_waiting", 0))
