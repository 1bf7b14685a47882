"""How many statements each operation takes: the same for one item as for hundreds.

The counts are pinned. One more is a decision to be taken here, in the open; one per item is a fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dispatch.operations.claim import Lease
from dispatch.operations.converge_cancellations import converge_cancellation
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.reap import reap
from dispatch.operations.requeue_orphans import requeue_orphans
from dispatch.operations.skips import Skips
from platform_site.access.tenants import default_tenant
from tests.support.aging import control_plane_there, let_leases_expire, let_retries_be_due
from tests.support.platform import (
    OpenFence,
    TestWorker,
    a_run,
    a_task,
    a_worker,
    published,
    queue_all,
    started,
)
from workflows.operations.request_cancel import request_cancel
from workflows.operations.start_run import RunRequest, start_run

pytestmark = pytest.mark.django_db

AGAIN = {"max_attempts": 2, "interval_ms": 60_000}
OF_THE_TEST = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
"""The test's own transaction turns each transaction of an operation into a savepoint."""


class Counted:
    """The statements of a block, and how long it took."""

    statements: list[str]
    seconds: float

    def __len__(self) -> int:
        return len(self.statements)


@contextmanager
def counting() -> Iterator[Counted]:
    """Count the statements of the block, COPY included, BEGIN and COMMIT not."""
    counted = Counted()
    with CaptureQueriesContext(connection) as captured:
        began = time.perf_counter()
        yield counted
        counted.seconds = time.perf_counter() - began
    texts = [query["sql"].strip() for query in captured.captured_queries]
    counted.statements = [text for text in texts if not text.startswith(OF_THE_TEST)]


def many(count: int, **more: Any) -> list[dict[str, Any]]:
    return [a_task(f"t{number}", **more) for number in range(count)]


def leased(count: int, *, slots: int = 1024, runs: int = 1, **more: Any) -> tuple[TestWorker, list[Lease]]:
    """A worker that holds so many leases of so many runs, with nothing else about."""
    worker = a_worker(slots=slots)
    published("flow", many(count // runs, **more))
    for _ in range(runs):
        started("flow")
    queue_all()
    leases = worker.claim(slots).leases
    assert len(leases) == count
    return worker, leases


def _start(count: int) -> Callable[[], object]:
    tenant_id = default_tenant().id
    wanted = RunRequest(workflow=published("flow", many(count, retry=AGAIN)))
    start_run(wanted, tenant_id=tenant_id, created_by="ann")  # classes are interned, the version is compiled
    return lambda: start_run(wanted, tenant_id=tenant_id, created_by="ann")


def _queue(count: int) -> Callable[[], object]:
    a_worker(slots=1024)
    a_run(many(count))
    return lambda: queue_ready(fence=OpenFence(), dispatch_limit=10_000, skips=Skips())


def _queue_many_runs(count: int) -> Callable[[], object]:
    a_worker(slots=1024)
    published("flow", many(5))
    for _ in range(max(count // 5, 1)):
        started("flow")
    return lambda: queue_ready(fence=OpenFence(), dispatch_limit=10_000, skips=Skips())


def _claim(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1024)
    a_run(many(count, input={"x": 1}))
    queue_all()
    return lambda: worker.claim(1024)


def _claim_many_runs(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1024)
    published("flow", many(1), concurrency=1)
    for _ in range(min(count, 100)):
        started("flow")
    queue_all()
    return lambda: worker.claim(1024)


def _claim_with_references(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1024)
    wanted = {"a": {"$from": "tasks.source.output.x"}, "b": {"$from": "params.y"}}
    tasks = [a_task("source"), *(a_task(f"t{n}", "source", input=wanted) for n in range(count))]
    started(published("flow", tasks, params={"type": "object"}), params={"y": 1})
    queue_all()
    worker.complete(worker.claim().leases, output={"x": [1]})
    queue_all()
    return lambda: worker.claim(1024)


def _refuse(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1024)
    wanted = {"a": {"$from": "tasks.source.output.nowhere"}}
    a_run(
        [a_task("source"), a_task("good"), *(a_task(f"t{n}", "source", input=wanted) for n in range(count))]
    )
    queue_all()
    worker.complete([one for one in worker.claim(2).leases if one.task_key == "source"], output={})
    worker.complete(list(worker.leases.values())[1:2])
    queue_all()
    return lambda: worker.claim(1024)


def _repeat(count: int) -> Callable[[], object]:
    worker, _ = leased(count)
    return lambda: worker.claim(1024, claim_no=worker.calls)


def _complete(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    return lambda: worker.complete(leases)


def _complete_many_runs(count: int) -> Callable[[], object]:
    worker, leases = leased(max(count, 2), runs=max(count // 5, 2))
    return lambda: worker.complete(leases)


def _retry(count: int) -> Callable[[], object]:
    worker, leases = leased(count, retry=AGAIN)
    return lambda: worker.complete(leases, kind="temporary_failure", error_code="busy")


def _fail(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    return lambda: worker.complete(leases, kind="permanent_failure", error_code="bad")


def _replay(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    worker.complete(leases)
    return lambda: worker.complete(leases)


def _unlock(count: int) -> Callable[[], object]:
    worker = a_worker()
    a_run([a_task("first"), *(a_task(f"t{n}", "first") for n in range(count))])
    queue_all()
    leases = worker.claim().leases
    return lambda: worker.complete(leases)


def _skip(count: int) -> Callable[[], object]:
    worker = a_worker()
    a_run([a_task("first"), a_task("free"), *(a_task(f"t{n}", "first") for n in range(count))])
    queue_all()
    leases = worker.claim().leases
    return lambda: worker.complete(leases, kind="permanent_failure", error_code="bad")


def _cancel(count: int) -> Callable[[], object]:
    published("flow", many(1))
    runs = [started("flow") for _ in range(min(count, 100))]
    return lambda: request_cancel(run_ids=runs, tenant_id=None, actor="ann")


def _converge(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    worker.request_cancel(leases[0].run_id)
    return lambda: converge_cancellation(leases[0].run_id, fence=OpenFence())


def _converge_ten_thousand(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1)
    run_id = a_run(many(count))
    queue_all()
    worker.claim()
    queue_all()
    worker.request_cancel(run_id)
    return lambda: converge_cancellation(run_id, fence=OpenFence())


def _reap(count: int) -> Callable[[], object]:
    control_plane_there()
    _, leases = leased(count, retry=AGAIN)
    let_leases_expire(leases)
    return lambda: reap(fence=OpenFence())


def _promote(count: int) -> Callable[[], object]:
    worker, leases = leased(count, retry=AGAIN)
    worker.complete(leases, kind="temporary_failure", error_code="busy")
    let_retries_be_due(leases[0].run_id)
    return lambda: promote_retries(fence=OpenFence(), skips=Skips())


def _requeue(count: int) -> Callable[[], object]:
    worker = a_worker(slots=1024)
    a_run(many(count))
    queue_all()
    worker.drain()
    return lambda: requeue_orphans(fence=OpenFence(), skips=Skips())


def _beat(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    return lambda: worker.beat(leases)


def _beat_with_lost(count: int) -> Callable[[], object]:
    worker, _ = leased(count)
    return lambda: worker.beat([])


def _release(count: int) -> Callable[[], object]:
    worker, leases = leased(count)
    return lambda: worker.release(leases[0])


def _drain(count: int) -> Callable[[], object]:
    worker, _ = leased(count)
    return worker.drain


PINNED: dict[Callable[[int], Callable[[], object]], int] = {
    _start: 8,
    _queue: 10,
    _queue_many_runs: 10,
    _claim: 12,
    _claim_many_runs: 12,
    _claim_with_references: 12,
    _refuse: 13,
    _repeat: 3,
    _complete: 8,
    _complete_many_runs: 9,
    _retry: 7,
    _fail: 8,
    _replay: 4,
    _unlock: 8,
    _skip: 8,
    _cancel: 3,
    _converge: 10,
    _reap: 9,
    _promote: 7,
    _requeue: 10,
    _beat: 4,
    _beat_with_lost: 4,
    _release: 7,
    _drain: 4,
}


@pytest.mark.parametrize("count", [1, 500])
@pytest.mark.parametrize("prepare", PINNED, ids=lambda prepare: prepare.__name__.strip("_"))
def test_an_operation_takes_as_many_statements_for_one_item_as_for_hundreds(
    prepare: Callable[[int], Callable[[], object]], count: int
) -> None:
    operation = prepare(count)
    with counting() as counted:
        operation()
    assert len(counted) == PINNED[prepare], f"{len(counted)}:\n" + "\n".join(
        text[:200] for text in counted.statements
    )


@pytest.mark.parametrize(
    "prepare", [_start, _unlock, _skip, _converge_ten_thousand], ids=["start", "unlock", "skip", "cancel"]
)
def test_ten_thousand_tasks_take_as_many_statements_as_one(
    prepare: Callable[[int], Callable[[], object]], record_property: Callable[[str, object], None]
) -> None:
    operation = prepare(9_998)
    with counting() as counted:
        operation()
    record_property("seconds", round(counted.seconds, 3))
    print(f"{prepare.__name__} of 10,000 tasks: {len(counted)} statements, {counted.seconds:.2f} s")
    assert len(counted) == PINNED.get(prepare, PINNED[_converge])
