from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from observability.metrics import METRICS, UNKNOWN, allowed, observe_operation, timed

DOCS = Path(__file__).parents[2] / "docs" / "observability.md"


def count(operation: str, outcome: str) -> float:
    labels = {"operation": operation, "outcome": outcome}
    return REGISTRY.get_sample_value("workload_operation_duration_seconds_count", labels) or 0


def test_an_operation_is_counted_with_its_outcome() -> None:
    before = count("claim", "empty")
    with timed("claim") as timing:
        timing.outcome = "empty"
    assert count("claim", "empty") == before + 1


def test_one_that_raises_is_an_error_and_still_raises() -> None:
    before = count("claim", "error")
    with pytest.raises(RuntimeError, match="no"), timed("claim"):
        raise RuntimeError("no")
    assert count("claim", "error") == before + 1


def test_values_outside_the_list_are_unknown() -> None:
    before = count(UNKNOWN, UNKNOWN)
    observe_operation("run-0190a", "a sentence", 0.1)
    assert count(UNKNOWN, UNKNOWN) == before + 1
    assert count("run-0190a", "a sentence") == 0
    assert allowed(7, frozenset({"7"})) == UNKNOWN


def test_no_label_can_hold_an_id() -> None:
    for metric in METRICS.values():
        for values in metric.labels.values():
            assert 0 < len(values) <= 32


def test_the_documented_metrics_are_the_metrics() -> None:
    rows = re.findall(
        r"^\| `(workload_\w+)` \| (\w+) \| ([^|]*) ?\| ([^|]+) \|$",
        DOCS.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    documented = [
        (name, kind, [word.strip() for word in labels.split(",") if word.strip()], meaning)
        for name, kind, labels, meaning in rows
    ]
    assert documented == [
        (name, metric.kind, list(metric.labels), metric.meaning) for name, metric in METRICS.items()
    ]
