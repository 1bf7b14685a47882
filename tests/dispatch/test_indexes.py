"""Each hot statement under the generic plan, and the index that serves it.

A session that runs a statement often gets a plan that knows no parameter; a partial index is then used only if the
statement itself, not a parameter, says what the index is restricted to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from psycopg import sql as psycopg_sql
from pytest_django.plugin import DjangoDbBlocker

from dispatch.statements import sql as dispatch_sql
from platform_site.statements import Statements
from tests.support.crowd import make_crowd

pytestmark = pytest.mark.django_db

LEDGER = Statements("workflows.ledger.sql")
LARGE = {
    "workflows_run",
    "workflows_task",
    "workflows_attempt",
    "workflows_stateevent",
    "dispatch_dispatch",
}
"""Tables that are history for the most part: nothing hot may read one from end to end."""
_PARAMETER = re.compile(r"%\((\w+)\)s")
_TYPES = {datetime: "timestamptz", timedelta: "interval"}
_TYPES_BY_NAME = {"priority": "smallint"}


@dataclass
class Crowd:
    """Values of the crowd that statements are explained with."""

    run: UUID
    task: int
    class_id: int
    worker: UUID
    dispatch: UUID
    now: datetime
    values: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def crowd(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Crowd]:
    with django_db_blocker.unblock(), transaction.atomic():
        make_crowd()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            cursor.execute(
                "SELECT run_id, task_id, task_class_id, worker_id, id, now() FROM dispatch_dispatch"
                " WHERE state = 'leased' LIMIT 1"
            )
            found = Crowd(*cursor.fetchone())
        yield found
        transaction.set_rollback(True)
    connection.close()


def _value(name: str, crowd: Crowd) -> Any:
    known: dict[str, Any] = {
        "run_id": crowd.run,
        "run_ids": [crowd.run],
        "worker_id": crowd.worker,
        "worker_ids": [crowd.worker],
        "task_ids": [crowd.task],
        "ids": [crowd.dispatch],
        "classes": [crowd.class_id],
        "rooms": [100],
        "positions": [1],
        "keys": ["t1"],
        "now": crowd.now,
        "lease": timedelta(seconds=15),
        "offline_after": timedelta(seconds=15),
        "skipped": [],
        "full_tenants": [],
    }
    if name in known:
        return known[name]
    if name in {"slots", "runs", "limit", "tasks", "batch", "claim_no", "total", "per_run"}:
        return 100
    return None


def explain(text: str, crowd: Crowd) -> tuple[set[str], set[str]]:
    """The indexes that the generic plan uses, and the tables that it reads from end to end."""
    names = list(dict.fromkeys(_PARAMETER.findall(text)))
    places = {name: f"${place}" for place, name in enumerate(names, start=1)}
    numbered = _PARAMETER.sub(lambda match: places[match[1]], text)
    values = [_value(name, crowd) for name in names]
    types = ", ".join(
        _TYPES_BY_NAME.get(name) or _TYPES.get(type(value), "unknown")
        for name, value in zip(names, values, strict=True)
    )
    literals = ", ".join(psycopg_sql.Literal(value).as_string(connection.connection) for value in values)
    with connection.cursor() as cursor:
        cursor.execute(f"PREPARE hot{f'({types})' if types else ''} AS {numbered}")
        try:
            cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE hot{f'({literals})' if literals else ''}")
            answer = cursor.fetchone()[0]
        finally:
            cursor.execute("DEALLOCATE hot")
    plan = json.loads(answer) if isinstance(answer, str) else answer
    indexes: set[str] = set()
    scanned: set[str] = set()
    _walk(plan[0]["Plan"], indexes, scanned)
    return indexes, scanned


def _walk(node: dict[str, Any], indexes: set[str], scanned: set[str]) -> None:
    if "Index Name" in node:
        indexes.add(node["Index Name"])
    if node["Node Type"] == "Seq Scan":
        scanned.add(node["Relation Name"])
    for child in node.get("Plans", ()):
        _walk(child, indexes, scanned)


HOT = {
    "claim_candidates": {"dispatch_pending", "dispatch_claim_no"},
    "claim_pending": {"dispatch_pending_run"},
    "worker_load": {"dispatch_leased_wrk", "dispatch_claim_no", "ready_queue_turn"},
    "queue_candidates": {"ready_queue_turn"},
    "open_classes": {"dispatch_pending", "ready_queue_turn"},
    "pending_by_class": {"dispatch_pending"},
    "pick_ready": {"task_ready"},
    "due_retries": {"task_retry"},
    "reap_candidates": {"dispatch_leased_exp", "dispatch_lost"},
    "lock_leases_of_worker": {"dispatch_leased_wrk"},
    "drain_worker": {"dispatch_leased_wrk"},
    "stop_drained_workers": {"dispatch_leased_wrk"},
    "cancel_candidates": {"run_cancel_pending"},
    "cancel_dispatches_of_runs": {"dispatch_open"},
    "lock_open_dispatches_of_run": {"dispatch_open"},
    "orphan_runs": {"dispatch_pending"},
    "pick_orphans": {"dispatch_pending_run"},
    "live_pools": {"worker_live"},
    "mark_offline": {"worker_live"},
}
"""Statement -> the indexes named for it in the models."""
COUNTS = {"open_classes", "pending_by_class"}
"""They count all that is pending by class: both partial indexes hold just that, with the class, and either will do."""


@pytest.mark.parametrize("name", sorted(HOT))
def test_a_hot_statement_uses_its_index(name: str, crowd: Crowd) -> None:
    indexes, scanned = explain(dispatch_sql.texts[name], crowd)
    if name in COUNTS and "dispatch_pending_run" in indexes:
        indexes = {*indexes, "dispatch_pending"}
    assert HOT[name] <= indexes, f"{name} uses {sorted(indexes)} and reads {sorted(scanned)}"


def test_the_leases_of_a_claim_are_found_among_those_of_its_worker(crowd: Crowd) -> None:
    """By the call's number, or by what the worker holds: both are few."""
    indexes, _ = explain(dispatch_sql.texts["leases_of_claim"], crowd)
    assert indexes & {"dispatch_claim_no", "dispatch_leased_wrk"}


@pytest.mark.parametrize("name", sorted(dispatch_sql.texts))
def test_no_statement_of_dispatch_reads_history_from_end_to_end(name: str, crowd: Crowd) -> None:
    _, scanned = explain(dispatch_sql.texts[name], crowd)
    assert not scanned & LARGE


@pytest.mark.parametrize("name", sorted(LEDGER.texts))
def test_no_statement_of_the_ledger_reads_history_from_end_to_end(name: str, crowd: Crowd) -> None:
    _, scanned = explain(LEDGER.texts[name], crowd)
    assert not scanned & LARGE


PACKAGES = ("dispatch.sql", "workflows.ledger.sql", "workflows.operations.sql")
_CALLED = re.compile(
    r'(?:sql|_sql|statements)\.(?:rows|records|run)\(\s*"(\w+)"|\b_?sql,\s*"(\w+)"|texts\["(\w+)"\]'
)
_LITERAL = re.compile(r'"(\w+)"')


def _found(pattern: re.Pattern[str], folder: Path) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    groups = (match.groups() for text in texts for match in pattern.finditer(text))
    return {name for group in groups for name in group if name}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_statement_is_used_and_every_name_exists(package: str) -> None:
    root = Path(str(resources.files(package.partition(".")[0])))
    folders = {
        "dispatch.sql": [root],
        "workflows.ledger.sql": [root / "ledger"],
        "workflows.operations.sql": [root / "operations"],
    }[package]
    files = {
        path.name.removesuffix(".sql")
        for path in Path(str(resources.files(package))).iterdir()
        if path.name.endswith(".sql")
    }
    assert files - set().union(*(_found(_LITERAL, folder) for folder in folders)) == set(), "run by nobody"
    assert set().union(*(_found(_CALLED, folder) for folder in folders)) - files == set(), "no such statement"


def test_the_named_indexes_of_the_models_are_all_accounted_for() -> None:
    """An index that serves no statement here only costs writes; pages have their own tests."""
    from dispatch.models import Dispatch, Worker

    named = {index.name for model in (Dispatch, Worker) for index in model._meta.indexes}
    for_pages = {"worker_newest", "dispatch_of_run"}
    assert named - for_pages == {index for indexes in HOT.values() for index in indexes if index in named}
