"""Writing what a ledger collected: a constant number of statements, whatever the number of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from platform_site.statements import Call, Statements, UnexpectedRowCount
from workflows.compiled import compiled_version
from workflows.kernel.progress import advance
from workflows.kernel.states import TaskState
from workflows.ledger.edges import EDGES
from workflows.ledger.moves import Moves
from workflows.ledger.records import Became
from workflows.ledger.work import RunWork

_sql = Statements("workflows.ledger.sql")


def flush(moves: Moves, now: datetime) -> Became:
    """Write every collected move and return what became possible. The runs are locked by the caller.

    Two round trips: first the moves and what follows from them, then the account of it.
    """
    batch = moves.batch
    _move_tasks(moves, now)
    unlocked, skipped = _advance(moves, now)
    canceled = _cancel(moves, now)
    batch.run()
    _note_unlocked(moves, unlocked)
    _note_skipped(moves, skipped)
    _note_canceled(moves, canceled, now)
    changed = [work for work in moves.work.values() if work.changed]
    became = _settle(changed, now)
    if changed:
        account = {**_events(changed), **_queue(changed), **_runs(changed)}
        batch.add(_sql, "write_account", len(changed), now=now, actor=moves.actor, **account)
    if became.settled:
        batch.add(_sql, "close_ready_queue", run_ids=list(became.settled))
    batch.run()
    return became


def _settle(changed: Sequence[RunWork], now: datetime) -> Became:
    became = Became()
    for work in changed:
        final = work.settle(now)
        if final is not None or work.state.terminal:
            became.settled[work.run.id] = work.state
        became.ready += sum(delta for delta in work.ready_delta.values() if delta > 0)
        became.freed |= work.open and work.active < work.run.active and work.counts[TaskState.READY] > 0
    return became


def _columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> dict[str, list[Any]]:
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def _move_tasks(moves: Moves, now: datetime) -> None:
    for edge in EDGES:
        rows = moves.rows.get(edge)
        if rows:
            arrays = _columns(rows, ("run_ids", "task_ids", *edge.columns))
            moves.batch.add(_sql, edge.statement, len(rows), now=now, **arrays)


def _advance(moves: Moves, now: datetime) -> tuple[Call | None, Call | None]:
    """Unlock the successors of successes, skip the descendants of failures."""
    met: list[tuple[UUID, int, int]] = []
    skipped: list[tuple[UUID, int]] = []
    for run_id, work in moves.work.items():
        if work.succeeded or work.failed:
            graph = compiled_version(work.run.version_id).graph
            progress = advance(graph, succeeded=work.succeeded, failed=work.failed)
            met.extend((run_id, position, count) for position, count in progress.decrements.items())
            skipped.extend((run_id, position) for position in progress.skipped)
    names = ("run_ids", "positions", "met")
    unlock = moves.batch.add(_sql, "unlock_tasks", **_columns(met, names)) if met else None
    skip = moves.batch.add(_sql, "skip_tasks", now=now, **_columns(skipped, names[:2])) if skipped else None
    return unlock, skip


def _cancel(moves: Moves, now: datetime) -> tuple[Call, Call, Call] | None:
    if not moves.canceled:
        return None
    attempts = moves.batch.add(_sql, "cancel_attempts", now=now, run_ids=moves.canceled)
    tasks = moves.batch.add(_sql, "open_tasks", run_ids=moves.canceled)
    return attempts, tasks, moves.batch.add(_sql, "cancel_tasks", now=now, run_ids=moves.canceled)


def _by_position(call: Call | None) -> list[tuple[Any, ...]]:
    return sorted(call.rows, key=lambda row: row[4]) if call else []


def _note_unlocked(moves: Moves, call: Call | None) -> None:
    for run_id, _task_id, key, class_id, _position, state in _by_position(call):
        if state == TaskState.READY:
            moves.work[run_id].task(
                key, class_id, TaskState.WAITING_DEPENDENCIES, TaskState.READY, "dependencies succeeded"
            )


def _note_skipped(moves: Moves, call: Call | None) -> None:
    for run_id, _task_id, key, class_id, _position in _by_position(call):
        moves.work[run_id].task(
            key, class_id, TaskState.WAITING_DEPENDENCIES, TaskState.SKIPPED, "upstream task failed"
        )


def _note_canceled(moves: Moves, calls: tuple[Call, Call, Call] | None, now: datetime) -> None:
    if calls is None:
        return
    attempts, tasks, update = calls
    if update.touched != len(tasks.rows):
        raise UnexpectedRowCount(update.name, update.touched, len(tasks.rows))
    for run_id, key, number in attempts.rows:
        moves.work[run_id].attempt(key, number, "canceled", "run canceled")
    for run_id, _task_id, key, class_id, _position, before in tasks.rows:
        moves.work[run_id].task(key, class_id, TaskState(before), TaskState.CANCELED, "run canceled")
    for run_id in moves.canceled:
        moves.work[run_id].cancel(now)


_EVENT_ARRAYS = ("event_runs", "event_seqs", "entities", "keys", "from_states", "to_states", "reasons")


def _events(changed: Sequence[RunWork]) -> dict[str, list[Any]]:
    rows = [
        (work.run.id, seq, *event)
        for work in changed
        for seq, event in enumerate(work.events, start=work.run.event_seq + 1)
    ]
    return _columns(rows, _EVENT_ARRAYS)


def _queue(changed: Sequence[RunWork]) -> dict[str, list[Any]]:
    """What changes in the ready queue: counts by class, and runs that open, close or take another turn."""
    going = [work for work in changed if not work.state.terminal]
    flat = [
        (work.run.id, class_id, delta)
        for work in going
        for class_id, delta in work.ready_delta.items()
        if delta
    ]
    counted = {run_id for run_id, _, _ in flat}
    moved = [
        (work.run.id, work.open, work.turn_at)
        for work in going
        if work.run.id in counted or work.turn_at != work.run.turn_at or _opened_or_closed(work)
    ]
    return {
        **_columns(moved, ("queue_runs", "queue_opens", "queue_turns")),
        **_columns(flat, ("delta_runs", "delta_classes", "deltas")),
    }


def _opened_or_closed(work: RunWork) -> bool:
    was_open = work.run.dispatchable and work.run.active < work.run.concurrency
    return work.open != was_open


_RUN_ARRAYS = (
    *("run_ids", "revisions", "states", "last_seqs", "started_ats", "finished_ats", "cancel_requested_ats"),
    *("last_dispatched_ats", "turn_ats", *(state.value for state in TaskState)),
)


def _runs(changed: Sequence[RunWork]) -> dict[str, list[Any]]:
    rows = []
    for work in changed:
        last_seq = work.run.event_seq + len(work.events)
        times = (work.started_at, work.finished_at, work.cancel_requested_at)
        counts = (work.counts[state] for state in TaskState)
        head = (work.run.id, work.run.revision, work.state.value, last_seq)
        rows.append((*head, *times, work.last_dispatched_at, work.turn_at, *counts))
    return _columns(rows, _RUN_ARRAYS)
