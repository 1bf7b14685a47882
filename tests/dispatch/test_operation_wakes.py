"""Which operations tell the coordinator that a pass is worth while: those that made something possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from platform_site import wake
from platform_site.access.models import Tenant
from platform_site.access.tenants import default_tenant
from tests.support.platform import a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry per wake-up of the coordinator."""
    seen: list[str] = []
    monkeypatch.setattr(wake, "coordinator", lambda: seen.append("coordinator"))
    return seen


@contextmanager
def _expects(woken: list[str], count: int) -> Iterator[None]:
    woken.clear()
    yield
    assert len(woken) == count


def test_start_cancel_and_register_wake(woken: list[str]) -> None:
    with _expects(woken, 1):
        worker = a_worker()
    with _expects(woken, 1):
        run_id = a_run([a_task("a")])
    with _expects(woken, 1):
        worker.request_cancel(run_id)
    with _expects(woken, 0):
        worker.request_cancel(run_id)


def test_a_result_that_unlocks_wakes_and_one_that_ends_all_does_not(woken: list[str]) -> None:
    worker = a_worker()
    a_run([a_task("a"), a_task("b", "a")])
    queue_all()
    leases = worker.claim().leases
    with _expects(woken, 1):
        worker.complete(leases)
    queue_all()
    leases = worker.claim().leases
    with _expects(woken, 0):
        worker.complete(leases)


def test_a_refused_input_that_frees_a_place_in_its_run_wakes(woken: list[str]) -> None:
    worker = a_worker()
    nowhere = {"x": {"$from": "tasks.a.output.nowhere"}}
    a_run([a_task("a"), a_task("b", "a", input=nowhere), a_task("c", "a"), a_task("d", "a")], concurrency=2)
    queue_all()
    worker.complete(worker.claim().leases, output={})
    queue_all()
    with _expects(woken, 1):
        assert [lease.task_key for lease in worker.claim(2).leases] == ["c"]


def test_a_claim_of_which_every_input_is_refused_wakes(woken: list[str]) -> None:
    worker = a_worker()
    nowhere = {"x": {"$from": "tasks.a.output.nowhere"}}
    a_run([a_task("a"), a_task("b", "a", input=nowhere), a_task("c", "a")], concurrency=1)
    queue_all()
    worker.complete(worker.claim().leases, output={})
    queue_all()
    with _expects(woken, 1):
        assert worker.claim(2).leases == []


def test_a_result_that_frees_a_place_in_its_run_wakes(woken: list[str]) -> None:
    worker = a_worker()
    a_run([a_task("a"), a_task("b")], concurrency=1)
    queue_all()
    leases = worker.claim().leases
    with _expects(woken, 1):
        worker.complete(leases)


def test_a_result_that_frees_a_place_in_a_quota_wakes(woken: list[str]) -> None:
    Tenant.objects.filter(pk=default_tenant().pk).update(max_running=1)
    worker = a_worker()
    a_run([a_task("a"), a_task("b")])
    assert queue_all() == 1
    leases = worker.claim().leases
    with _expects(woken, 1):
        worker.complete(leases)


def test_a_claim_wakes_only_if_more_could_be_queued(woken: list[str]) -> None:
    worker = a_worker(slots=1)
    a_run([a_task("a"), a_task("b")])
    assert queue_all() == 1
    with _expects(woken, 1):
        lease = worker.claim().leases[0]
    worker.complete([lease])
    queue_all()
    with _expects(woken, 0):
        worker.claim()


def test_a_lease_given_back_wakes(woken: list[str]) -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    lease = worker.claim().leases[0]
    with _expects(woken, 1):
        worker.release(lease)
