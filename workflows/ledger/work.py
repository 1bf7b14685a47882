"""One run's share of a ledger transaction: its counters, events and ready deltas as they build up."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from workflows.kernel.progress import settled_state
from workflows.kernel.states import RunState, TaskState, check_run_move
from workflows.ledger.records import LockedRun

HEAD_START = timedelta(seconds=10)
PRIORITY_STEP = timedelta(seconds=5)


def turn_at(*, created_at: datetime, last_dispatched_at: datetime | None, priority: int) -> datetime:
    """When a run's turn comes; the smallest is served first, and waiting is what ages it."""
    return (last_dispatched_at or created_at - HEAD_START) - priority * PRIORITY_STEP


class RunWork:
    """Collects what one transaction does to one locked run."""

    def __init__(self, run: LockedRun) -> None:
        self.run = run
        self.state = run.state
        self.counts: Counter[TaskState] = Counter(run.counts)
        self.started_at = run.started_at
        self.finished_at = run.finished_at
        self.cancel_requested_at = run.cancel_requested_at
        self.last_dispatched_at = run.last_dispatched_at
        self.ready_delta: Counter[int] = Counter()
        self.events: list[tuple[str, str, str, str, str]] = []
        self.succeeded: list[int] = []
        self.failed: list[int] = []

    @property
    def changed(self) -> bool:
        return bool(self.events)

    @property
    def active(self) -> int:
        return self.counts[TaskState.QUEUED] + self.counts[TaskState.RUNNING]

    @property
    def open(self) -> bool:
        """Whether ready tasks of it may be queued."""
        return (
            not self.state.terminal
            and self.cancel_requested_at is None
            and self.active < self.run.concurrency
        )

    @property
    def turn_at(self) -> datetime:
        if self.last_dispatched_at == self.run.last_dispatched_at:
            return self.run.turn_at
        return turn_at(
            created_at=self.run.created_at,
            last_dispatched_at=self.last_dispatched_at,
            priority=self.run.priority,
        )

    def task(self, key: str, class_id: int, source: TaskState, target: TaskState, reason: str) -> None:
        """Count one task's move and note its event."""
        self.counts[source] -= 1
        self.counts[target] += 1
        if source is TaskState.READY:
            self.ready_delta[class_id] -= 1
        if target is TaskState.READY:
            self.ready_delta[class_id] += 1
        self.events.append(("task", key, source.value, target.value, reason))

    def attempt(self, key: str, number: int, target: str, reason: str) -> None:
        """Note that an attempt ended."""
        self.events.append(("attempt", f"{key}/{number}", "running", target, reason))

    def start(self, now: datetime) -> None:
        """pending -> running, with the first task that leaves ready."""
        if self.state is RunState.PENDING:
            self._move(RunState.RUNNING, "first task queued")
            self.started_at = now

    def cancel(self, now: datetime) -> None:
        self._move(RunState.CANCELED, "cancel requested")
        self.finished_at = now

    def note(self, reason: str) -> None:
        """An event of the run that is not a move: its state stays."""
        self.events.append(("run", str(self.run.id), self.state.value, self.state.value, reason))

    def settle(self, now: datetime) -> RunState | None:
        """Settle the run if every task of it is done; returns the new state, if it settled now."""
        if self.state.terminal:
            return None
        final = settled_state(self.counts)
        if final is None:
            return None
        self.start(now)  # a run whose tasks all ended without one being queued still began
        self._move(final, "all tasks are done")
        self.finished_at = now
        return final

    def _move(self, target: RunState, reason: str) -> None:
        check_run_move(self.state, target)
        self.events.append(("run", str(self.run.id), self.state.value, target.value, reason))
        self.state = target
