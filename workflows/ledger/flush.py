"""Writing what a ledger collected: a constant number of statements, whatever the number of tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from platform_site.statements import Batch, Call, Statements, copy_rows
from workflows.compiled import compiled_version
from workflows.kernel.progress import advance
from workflows.kernel.states import TaskState
from workflows.ledger.edges import EDGES
from workflows.ledger.moves import Moves
from workflows.ledger.records import Became
from workflows.ledger.work import RunWork

_sql = Statements("workflows.ledger.sql")

# Up to here one INSERT ... unnest is faster than opening a COPY.
FEW_EVENTS = 200
_EVENT_COLUMNS = ("run_id", "seq", "at", "entity", "key", "from_state", "to_state", "reason", "actor")


def flush(moves: Moves, now: datetime) -> Became:
    """Write every collected move and return what became possible. The runs are locked by the caller.

    Two round trips: first the moves and what follows from them, then the account of it.
    """
    batch = moves.batch
    _move_tasks(moves, now)
    _begin_attempts(moves, now)
    _finish_attempts(moves, now)
    unlocked, skipped = _advance(moves, now)
    attempts, tasks = _cancel(moves, now)
    batch.run()
    _note_unlocked(moves, unlocked)
    _note_skipped(moves, skipped)
    _note_canceled(moves, attempts, tasks, now)
    changed = [work for work in moves.work.values() if work.changed]
    became = _settle(changed, now)
    _write_events(batch, changed, now, moves.actor)
    _write_ready_queue(batch, changed, became)
    _write_runs(batch, changed)
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
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def _move_tasks(moves: Moves, now: datetime) -> None:
    for edge in EDGES:
        rows = moves.rows.get(edge)
        if rows:
            arrays = _columns(rows, ("run_ids", "task_ids", *edge.columns))
            moves.batch.add(_sql, edge.statement, len(rows), now=now, **arrays)


def _begin_attempts(moves: Moves, now: datetime) -> None:
    if not moves.births:
        return
    rows = [
        (
            *(birth.task.run_id, birth.task.task_id, birth.number, state.value, birth.worker_id),
            *(birth.worker_name, birth.dispatch_id, birth.generation, birth.deadline, code, message, reason),
        )
        for birth, state, code, message, reason in moves.births
    ]
    names: tuple[str, ...] = ("run_ids", "task_ids", "numbers", "states", "worker_ids", "worker_names")
    names += ("dispatch_ids", "generations", "deadlines", "error_codes", "error_messages", "reasons")
    moves.batch.add(_sql, "insert_attempts", len(rows), now=now, **_columns(rows, names))


def _finish_attempts(moves: Moves, now: datetime) -> None:
    if moves.endings:
        names = ("run_ids", "task_ids", "numbers", "states", "error_codes", "error_messages", "reasons")
        arrays = _columns(moves.endings, names)
        moves.batch.add(_sql, "finish_attempts", len(moves.endings), now=now, **arrays)


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


def _cancel(moves: Moves, now: datetime) -> tuple[Call | None, Call | None]:
    if not moves.canceled:
        return None, None
    attempts = moves.batch.add(_sql, "cancel_attempts", now=now, run_ids=moves.canceled)
    tasks = moves.batch.add(_sql, "cancel_tasks", now=now, run_ids=moves.canceled)
    return attempts, tasks


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


def _note_canceled(moves: Moves, attempts: Call | None, tasks: Call | None, now: datetime) -> None:
    for run_id, key, number in attempts.rows if attempts else ():
        moves.work[run_id].attempt(key, number, "canceled", "run canceled")
    for run_id, _task_id, key, class_id, _position, before in _by_position(tasks):
        moves.work[run_id].task(key, class_id, TaskState(before), TaskState.CANCELED, "run canceled")
    for run_id in moves.canceled:
        moves.work[run_id].cancel(now)


def _write_events(batch: Batch, changed: Sequence[RunWork], now: datetime, actor: str) -> None:
    rows = [
        (work.run.id, seq, *event)
        for work in changed
        for seq, event in enumerate(work.events, start=work.run.event_seq + 1)
    ]
    if len(rows) > FEW_EVENTS:
        copy_rows(
            "workflows_stateevent",
            _EVENT_COLUMNS,
            ((run_id, seq, now, *event, actor) for run_id, seq, *event in rows),
        )
    elif rows:
        names = ("run_ids", "seqs", "entities", "keys", "from_states", "to_states", "reasons")
        batch.add(_sql, "insert_events", now=now, actor=actor, **_columns(rows, names))


def _write_ready_queue(batch: Batch, changed: Sequence[RunWork], became: Became) -> None:
    going = [work for work in changed if not work.state.terminal]
    deltas: dict[UUID, Counter[int]] = defaultdict(Counter)
    for work in going:
        deltas[work.run.id].update({key: delta for key, delta in work.ready_delta.items() if delta})
    flat = [(run_id, class_id, delta) for run_id, by in deltas.items() for class_id, delta in by.items()]
    moved = [
        work
        for work in going
        if deltas[work.run.id] or work.turn_at != work.run.turn_at or _opened_or_closed(work)
    ]
    if moved:
        batch.add(
            _sql,
            "update_ready_queue",
            run_ids=[work.run.id for work in moved],
            opens=[work.open for work in moved],
            turn_ats=[work.turn_at for work in moved],
            delta_runs=[run_id for run_id, _, _ in flat],
            delta_classes=[class_id for _, class_id, _ in flat],
            deltas=[delta for _, _, delta in flat],
        )
    if became.settled:
        batch.add(_sql, "close_ready_queue", run_ids=list(became.settled))


def _opened_or_closed(work: RunWork) -> bool:
    was_open = work.run.dispatchable and work.run.active < work.run.concurrency
    return work.open != was_open


_RUN_ARRAYS = (
    *("run_ids", "revisions", "states", "event_seqs", "started_ats", "finished_ats", "cancel_requested_ats"),
    *("last_dispatched_ats", "turn_ats", *(state.value for state in TaskState)),
)


def _write_runs(batch: Batch, changed: Sequence[RunWork]) -> None:
    if not changed:
        return
    rows = [
        (
            *(work.run.id, work.run.revision, work.state.value, work.run.event_seq + len(work.events)),
            *(
                work.started_at,
                work.finished_at,
                work.cancel_requested_at,
                work.last_dispatched_at,
                work.turn_at,
            ),
            *(work.counts[state] for state in TaskState),
        )
        for work in changed
    ]
    batch.add(_sql, "update_runs", len(rows), **_columns(rows, _RUN_ARRAYS))
