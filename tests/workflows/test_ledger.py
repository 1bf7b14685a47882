"""The ledger's own rules: where it works, what it refuses, and that nothing of a refused transaction commits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from uuid_utils.compat import uuid7

from dispatch.models import Dispatch
from platform_site.guarded import GuardedWriteError
from platform_site.statements import Statements, UnexpectedRowCount
from tests.support.facts import everything_of, moves_of, the_run, the_task
from tests.support.platform import a_run, a_task, a_worker, queue_all
from workflows.kernel.errors import IllegalTransition
from workflows.kernel.states import AttemptState, RunState, TaskState
from workflows.ledger import LedgerError, RunLedger, TaskRef
from workflows.ledger.edges import EDGES, Edge
from workflows.models import Run, StateEvent, Task


def _ref(run_id: UUID, key: str = "a") -> TaskRef:
    task = the_task(run_id, key)
    return TaskRef(run_id, task.pk, key, task.task_class_id, task.position)


@pytest.mark.django_db
def test_a_clean_exit_writes_the_move_its_event_the_counters_and_one_revision() -> None:
    run_id = a_run([a_task("a"), a_task("b")])
    with transaction.atomic(durable=True), RunLedger.open([run_id], actor="me") as ledger:
        ledger.queue_tasks([_ref(run_id, "a"), _ref(run_id, "b")])
    run = the_run(run_id)
    assert (run.state, run.revision, run.tasks_queued, run.tasks_ready) == ("running", 1, 2, 0)
    assert [move[0] for move in moves_of(run_id)] == ["run", "run", "task", "task"]
    assert set(StateEvent.objects.filter(run=run_id, seq__gt=1).values_list("actor", flat=True)) == {"me"}
    assert run.turn_at == run.last_dispatched_at


@pytest.mark.django_db
def test_a_ledger_without_moves_changes_nothing() -> None:
    run_id = a_run([a_task("a")])
    before = everything_of(run_id)
    with transaction.atomic(durable=True), RunLedger.open([run_id, uuid7()]) as ledger:
        assert set(ledger.runs) == {run_id}
    assert everything_of(run_id) == before


@pytest.mark.django_db
def test_an_exception_discards_every_move_and_whatever_else_was_written() -> None:
    run_id = a_run([a_task("a")])
    before = everything_of(run_id)

    def fail(ledger: RunLedger) -> None:
        ledger.queue_tasks([_ref(run_id)])
        Run.objects.filter(pk=run_id).update(labels={"written": "beside"})
        raise ValueError("the operation fails")

    with transaction.atomic(durable=True), suppress(ValueError), RunLedger.open([run_id]) as ledger:
        fail(ledger)
        # Caught, and still nothing commits.
    assert everything_of(run_id) == before


@pytest.mark.django_db
def test_a_return_from_the_block_is_a_clean_exit() -> None:
    run_id = a_run([a_task("a")])

    def operation() -> str:
        with transaction.atomic(durable=True), RunLedger.open([run_id]) as ledger:
            ledger.queue_tasks([_ref(run_id)])
            return "named outcome"

    assert operation() == "named outcome"
    assert the_task(run_id, "a").state == "queued"


@pytest.mark.django_db(transaction=True)
def test_it_refuses_to_work_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="open transaction"), RunLedger.open([uuid7()]):
        raise AssertionError("It opened.")


def _within(run_ids: list[UUID], act: Callable[[RunLedger], object]) -> None:
    with transaction.atomic(durable=True), RunLedger.open(run_ids) as ledger:
        act(ledger)


@pytest.mark.django_db
def test_it_refuses_a_savepoint_around_it_and_a_second_one_within() -> None:
    run_id = a_run([a_task("a")])

    def in_a_savepoint() -> None:
        with transaction.atomic(), transaction.atomic(), RunLedger.open([run_id]):
            raise AssertionError("It opened within a savepoint.")

    with pytest.raises(LedgerError, match="savepoint"):
        in_a_savepoint()
    with pytest.raises(LedgerError, match="open already"):
        _within([run_id], lambda _: RunLedger.over([run_id]).__enter__())
    reference = _ref(run_id)
    _within([run_id], lambda ledger: ledger.queue_tasks([reference]))  # it works again after the refusals
    assert the_task(run_id, "a").state == "queued"


@pytest.mark.django_db
def test_it_refuses_a_run_that_it_did_not_lock_and_one_that_is_finished() -> None:
    locked, other = a_run([a_task("a")], name="one"), a_run([a_task("a")], name="two")
    reference = _ref(other)
    with pytest.raises(LedgerError, match="not locked"):
        _within([locked], lambda ledger: ledger.queue_tasks([reference]))
    worker = a_worker()
    queue_all()
    worker.complete(worker.claim(2).leases)
    with pytest.raises(LedgerError, match="nothing of it moves"):
        _within([other], lambda ledger: ledger.request_cancel([other]))


MISPLACED: dict[str, Callable[[RunLedger, TaskRef], None]] = {
    "queue": lambda ledger, task: ledger.queue_tasks([task]),
    "requeue": lambda ledger, task: ledger.requeue_tasks([task], reason="x"),
    "promote": lambda ledger, task: ledger.promote_tasks([task]),
    "release": lambda ledger, task: ledger.release_tasks([(task, 1)], reason="x"),
    "succeed": lambda ledger, task: ledger.succeed_tasks([(task, 1, "null")]),
    "fail": lambda ledger, task: ledger.fail_tasks([(task, 1, AttemptState.FAILED, "x", "", "x")]),
}


@pytest.mark.django_db
@pytest.mark.parametrize("move", MISPLACED)
def test_a_task_that_is_not_where_it_should_be_is_a_bug_and_commits_nothing(move: str) -> None:
    run_id = a_run([a_task("a"), a_task("b", "a")])
    before = everything_of(run_id)
    waiting = _ref(run_id, "b")
    with pytest.raises(UnexpectedRowCount):
        _within([run_id], lambda ledger: MISPLACED[move](ledger, waiting))
    assert everything_of(run_id) == before


def test_every_edge_is_one_of_the_kernels_table() -> None:
    assert len({edge.statement for edge in EDGES}) == len(EDGES)
    with pytest.raises(IllegalTransition):
        Edge("x", (TaskState.SUCCEEDED, TaskState.READY), ())


@pytest.mark.django_db
def test_terminal_states_cannot_be_left_even_past_the_ledger() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.complete(worker.claim().leases)
    assert RunState(the_run(run_id).state).terminal
    for statement in (
        "UPDATE workflows_run SET state = 'running' WHERE id = %s",
        "UPDATE workflows_task SET state = 'ready' WHERE run_id = %s",
    ):
        with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, [run_id])


@pytest.mark.django_db
def test_nobody_else_writes_its_columns_by_accident() -> None:
    run_id = a_run([a_task("a")])
    run, task = the_run(run_id), the_task(run_id, "a")
    with pytest.raises(GuardedWriteError, match=r"workflows\.ledger"):
        run.save()
    with pytest.raises(GuardedWriteError):
        Task.objects.filter(pk=task.pk).update(state="succeeded")
    with pytest.raises(GuardedWriteError):
        Run.objects.bulk_update([run], ["revision"])
    with pytest.raises(GuardedWriteError):
        StateEvent.objects.create(run=run, seq=2)


@pytest.mark.django_db
def test_priority_and_last_dispatch_decide_the_turn() -> None:
    from workflows.ledger.work import turn_at

    run = the_run(a_run([a_task("a")]))
    created = run.created_at
    assert turn_at(created_at=created, last_dispatched_at=None, priority=2) == created - timedelta(seconds=20)
    later = created + timedelta(hours=1)
    assert turn_at(created_at=created, last_dispatched_at=later, priority=-1) == later + timedelta(seconds=5)


@pytest.mark.django_db
def test_what_an_operation_notes_beside_the_moves_is_sent_even_if_nothing_moves() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    [lease] = worker.claim(1).leases
    with transaction.atomic(), RunLedger.open([run_id]) as ledger:
        ledger.batch.add(Statements("dispatch.sql"), "mark_lost", 1, ids=[lease.dispatch_id], now=ledger.now)
    assert Dispatch.objects.get(pk=lease.dispatch_id).lost_at is not None
