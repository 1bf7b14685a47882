"""What `/metrics` exports beside the default registry, in single and multi-process mode alike."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from observability.pool import PoolCollector
from observability.snapshot import SnapshotCollector

PLATFORM_REGISTRY = CollectorRegistry()
PLATFORM_REGISTRY.register(SnapshotCollector())
PLATFORM_REGISTRY.register(PoolCollector())
