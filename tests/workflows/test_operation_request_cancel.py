"""Asking for a cancel: the intent, once, and nothing else yet."""

from __future__ import annotations

from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from platform_site.access.models import Tenant
from platform_site.access.tenants import default_tenant
from tests.support.facts import everything_of, moves_of, ready_rows, task_states, the_run
from tests.support.platform import a_run, a_task, a_worker, published, queue_all, started
from workflows.errors import RunNotFound
from workflows.kernel.states import RunState
from workflows.operations.request_cancel import CancelAnswer, request_cancel

pytestmark = pytest.mark.django_db


def _cancel(*run_ids: UUID, tenant_id: int | None = None) -> list[CancelAnswer]:
    return request_cancel(run_ids=run_ids, tenant_id=tenant_id, actor="ann")


def test_the_intent_is_recorded_and_the_run_stays_as_it_is() -> None:
    run_id = a_run([a_task("a"), a_task("b", "a")])
    [answer] = _cancel(run_id, tenant_id=default_tenant().id)
    run = the_run(run_id)
    assert answer.requested
    assert answer.state is RunState.PENDING
    assert answer.cancel_requested_at == run.cancel_requested_at is not None
    assert (run.state, run.revision) == ("pending", 1)
    assert moves_of(run_id)[1:] == [("run", str(run_id), "pending", "pending")]
    assert task_states(run_id) == {"a": "ready", "b": "waiting_dependencies"}


def test_nothing_of_it_is_queued_any_more() -> None:
    a_worker()
    run_id = a_run([a_task("a")])
    _cancel(run_id)
    assert ready_rows(run_id) == [(1, False)]
    assert queue_all() == 0


def test_a_repeat_changes_nothing() -> None:
    run_id = a_run([a_task("a")])
    [first] = _cancel(run_id)
    before = everything_of(run_id)
    [second] = _cancel(run_id)
    assert not second.requested
    assert second.cancel_requested_at == first.cancel_requested_at
    assert everything_of(run_id) == before


def test_a_finished_run_is_left_as_it_is() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.complete(worker.claim().leases)
    before = everything_of(run_id)
    [answer] = _cancel(run_id)
    assert not answer.requested
    assert answer.state is RunState.SUCCEEDED
    assert everything_of(run_id) == before


def test_an_unknown_or_foreign_run_refuses_the_whole_request() -> None:
    mine = a_run([a_task("a")])
    stranger = Tenant.objects.create(slug="stranger", name="Stranger")
    before = everything_of(mine)
    with pytest.raises(RunNotFound):
        _cancel(mine, uuid7())
    with pytest.raises(RunNotFound):
        _cancel(mine, tenant_id=stranger.id)
    assert everything_of(mine) == before


def test_many_at_once_are_answered_in_order_and_each_once() -> None:
    published("etl", [a_task("a")])
    runs = [started("etl") for _ in range(3)]
    wanted = [runs[2], runs[0], runs[2], runs[1]]
    answers = _cancel(*wanted)
    assert [answer.run_id for answer in answers] == [runs[2], runs[0], runs[1]]
    assert all(answer.requested for answer in answers)
