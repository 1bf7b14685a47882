"""The moves an operation may ask of the ledger: one method per edge, each taking a set of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from platform_site.statements import Batch
from workflows.kernel.states import AttemptState, check_attempt_move
from workflows.ledger import edges
from workflows.ledger.edges import Edge
from workflows.ledger.records import Birth, LockedRun, TaskRef
from workflows.ledger.work import RunWork


class LedgerError(RuntimeError):
    """The ledger was used against its rules, or a guarded row count differed: a bug, never a lost race."""


class Moves:
    """Collects moves in memory. Nothing is written before the flush."""

    def __init__(self, runs: Sequence[LockedRun], *, actor: str, now: datetime) -> None:
        self.now = now
        """Database time, read after the locks."""
        self.actor = actor
        self.runs = {run.id: run for run in runs}
        self.work = {run.id: RunWork(run) for run in runs}
        self.rows: dict[Edge, list[tuple[Any, ...]]] = {}
        self.canceled: list[UUID] = []
        self.batch = Batch()
        """Writes of the operation's own tables, sent together with the moves."""

    @property
    def dirty(self) -> bool:
        return bool(self.canceled or self.batch) or any(work.changed for work in self.work.values())

    def queue_tasks(self, tasks: Iterable[TaskRef], *, reason: str = "queued for a worker") -> None:
        """ready -> queued. The run starts with its first queued task; its turn moves to the back."""
        for task in tasks:
            work = self._work_of(task)
            work.start(self.now)
            work.last_dispatched_at = self.now
            self._move(edges.QUEUE, task, reason, reason)

    def requeue_tasks(self, tasks: Iterable[TaskRef], *, reason: str) -> None:
        """queued -> ready: nothing was started, nothing is consumed."""
        for task in tasks:
            self._move(edges.REQUEUE, task, reason, reason)

    def claim_tasks(self, births: Iterable[Birth]) -> None:
        """queued -> running, each with its new attempt."""
        for birth in births:
            held = (birth.worker_id, birth.worker_name, birth.dispatch_id, birth.generation, birth.deadline)
            self._move(edges.CLAIM, birth.task, "claimed", birth.number, *held)

    def refuse_tasks(self, refusals: Iterable[tuple[Birth, str, str]]) -> None:
        """queued -> running -> failed, with an attempt that no worker saw; (birth, error code, message)."""
        reason = "input cannot be resolved"
        for birth, code, message in refusals:
            told = (birth.number, birth.dispatch_id, birth.deadline, reason, code, message)
            self._move(edges.REFUSE, birth.task, reason, *told)
            self._end(birth.task, birth.number, AttemptState.FAILED, reason)
            self.work[birth.task.run_id].failed.append(birth.task.position)

    def succeed_tasks(self, results: Iterable[tuple[TaskRef, int, str | None]]) -> None:
        """running -> succeeded; (task, attempt number, canonical output). Successors unlock in the flush."""
        for task, number, output in results:
            self._end(task, number, AttemptState.SUCCEEDED, "result accepted")
            self._move(edges.SUCCEED, task, "result accepted", number, output)
            self.work[task.run_id].succeeded.append(task.position)

    def retry_tasks(
        self, ends: Iterable[tuple[TaskRef, int, AttemptState, datetime, bool, str, str, str]]
    ) -> None:
        """running -> waiting_retry.

        Each is (task, attempt number, how the attempt ended, when to try again, whether it counts against
        the budget, error code, error message, reason).
        """
        for task, number, state, ready_at, used, code, message, reason in ends:
            self._end(task, number, state, reason)
            told = (number, state.value, ready_at, int(used), reason, code, message)
            self._move(edges.RETRY, task, reason, *told)

    def fail_tasks(self, ends: Iterable[tuple[TaskRef, int, AttemptState, str, str, str]]) -> None:
        """running -> failed; (task, attempt number, how it ended, error code, message, reason).

        Descendants are skipped in the flush.
        """
        for task, number, state, code, message, reason in ends:
            self._end(task, number, state, reason)
            self._move(edges.FAIL, task, reason, number, state.value, reason, code, message)
            self.work[task.run_id].failed.append(task.position)

    def release_tasks(self, releases: Iterable[tuple[TaskRef, int]], *, reason: str) -> None:
        """running -> ready: the attempt was given back unstarted and consumes nothing."""
        for task, number in releases:
            self._end(task, number, AttemptState.RELEASED, reason)
            self._move(edges.RELEASE, task, reason, number, reason)

    def promote_tasks(self, tasks: Iterable[TaskRef], *, reason: str = "retry is due") -> None:
        """waiting_retry -> ready."""
        for task in tasks:
            self._move(edges.PROMOTE, task, reason, reason)

    def request_cancel(self, run_ids: Iterable[UUID]) -> None:
        """Persist the intent: from the commit on, no attempt of these runs starts."""
        for run_id in run_ids:
            work = self._run(run_id)
            work.cancel_requested_at = self.now
            work.note("cancel requested")

    def cancel_runs(self, run_ids: Iterable[UUID]) -> None:
        """Every open task and attempt of these runs, and the runs themselves -> canceled."""
        for run_id in run_ids:
            self._run(run_id)
            self.canceled.append(run_id)

    def _end(self, task: TaskRef, number: int, state: AttemptState, reason: str) -> None:
        check_attempt_move(AttemptState.RUNNING, state)
        self._work_of(task).attempt(task.key, number, state.value, reason)

    def _move(self, edge: Edge, task: TaskRef, reason: str, *values: Any) -> None:
        work = self._work_of(task)
        for source, target in zip(edge.via, edge.via[1:], strict=False):
            work.task(task.key, task.class_id, source, target, reason)
        self.rows.setdefault(edge, []).append((task.run_id, task.task_id, *values))

    def _work_of(self, task: TaskRef) -> RunWork:
        return self._run(task.run_id)

    def _run(self, run_id: UUID) -> RunWork:
        work = self.work.get(run_id)
        if work is None:
            raise LedgerError(f"Run {run_id} is not locked by this ledger.")
        if work.state.terminal:
            raise LedgerError(f"Run {run_id} is {work.state.value}; nothing of it moves any more.")
        return work
