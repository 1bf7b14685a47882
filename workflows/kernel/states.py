"""States of runs, tasks and attempts, the moves between them, and what each state means to people.

One table per object; a move that is not in it is refused. Tables say what may happen, not when: the reasons
live in `progress` and `retry`, the writing in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from workflows.kernel.errors import IllegalTransition


class RunState(StrEnum):
    """A run settles exactly when every one of its tasks is terminal."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        return not RUN_TRANSITIONS[self]


class TaskState(StrEnum):
    """`queued` owns no worker, starts no timeout and consumes no attempt: it only waits to be claimed."""

    WAITING_DEPENDENCIES = "waiting_dependencies"
    READY = "ready"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_RETRY = "waiting_retry"
    WAITING_APPROVAL = "waiting_approval"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"

    @property
    def terminal(self) -> bool:
        return not TASK_TRANSITIONS[self]


class AttemptState(StrEnum):
    """`released` and `suspended` attempts consume nothing of the retry budget."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    CANCELED = "canceled"
    RELEASED = "released"
    SUSPENDED = "suspended"

    @property
    def terminal(self) -> bool:
        return not ATTEMPT_TRANSITIONS[self]


_State = TypeVar("_State", RunState, TaskState, AttemptState)


def _table(moves: dict[_State, set[_State]]) -> Mapping[_State, frozenset[_State]]:
    return MappingProxyType({source: frozenset(targets) for source, targets in moves.items()})


RUN_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = _table(
    {
        RunState.PENDING: {RunState.RUNNING, RunState.CANCELED},
        RunState.RUNNING: {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED},
        RunState.SUCCEEDED: set(),
        RunState.FAILED: set(),
        RunState.CANCELED: set(),
    }
)

TASK_TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = _table(
    {
        TaskState.WAITING_DEPENDENCIES: {TaskState.READY, TaskState.SKIPPED, TaskState.CANCELED},
        # Skipping a ready task is kept for conditions: until they exist no cause leads there.
        TaskState.READY: {TaskState.QUEUED, TaskState.WAITING_APPROVAL, TaskState.CANCELED},
        TaskState.QUEUED: {TaskState.RUNNING, TaskState.READY, TaskState.CANCELED},
        TaskState.RUNNING: {
            TaskState.SUCCEEDED,
            TaskState.WAITING_RETRY,
            TaskState.FAILED,
            TaskState.READY,
            TaskState.WAITING_APPROVAL,
            TaskState.CANCELED,
        },
        TaskState.WAITING_RETRY: {TaskState.READY, TaskState.FAILED, TaskState.CANCELED},
        TaskState.WAITING_APPROVAL: {
            TaskState.READY,
            TaskState.SUCCEEDED,
            TaskState.FAILED,
            TaskState.CANCELED,
        },
        TaskState.SUCCEEDED: set(),
        TaskState.FAILED: set(),
        TaskState.CANCELED: set(),
        TaskState.SKIPPED: set(),
    }
)

ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = _table(
    {
        AttemptState.RUNNING: {
            AttemptState.SUCCEEDED,
            AttemptState.FAILED,
            AttemptState.TIMED_OUT,
            AttemptState.INTERRUPTED,
            AttemptState.CANCELED,
            AttemptState.RELEASED,
            AttemptState.SUSPENDED,
        },
        AttemptState.SUCCEEDED: set(),
        AttemptState.FAILED: set(),
        AttemptState.TIMED_OUT: set(),
        AttemptState.INTERRUPTED: set(),
        AttemptState.CANCELED: set(),
        AttemptState.RELEASED: set(),
        AttemptState.SUSPENDED: set(),
    }
)


def check_run_move(source: RunState, target: RunState) -> None:
    """Raise `IllegalTransition` unless a run may go from `source` to `target`."""
    if target not in RUN_TRANSITIONS[source]:
        raise IllegalTransition("run", source, target)


def check_task_move(source: TaskState, target: TaskState) -> None:
    """Raise `IllegalTransition` unless a task may go from `source` to `target`."""
    if target not in TASK_TRANSITIONS[source]:
        raise IllegalTransition("task", source, target)


def check_attempt_move(source: AttemptState, target: AttemptState) -> None:
    """Raise `IllegalTransition` unless an attempt may go from `source` to `target`."""
    if target not in ATTEMPT_TRANSITIONS[source]:
        raise IllegalTransition("attempt", source, target)


@dataclass(frozen=True, slots=True)
class StateHelp:
    """A sentence each: who puts an object into this state, who moves it on, what to do if it stays."""

    put_by: str
    moved_by: str
    if_it_stays: str


_FINAL = "Nobody: the state is final."
_NOTHING_TO_DO = "Nothing to do."

_RUN_HELP: dict[StrEnum, StateHelp] = {
    RunState.PENDING: StateHelp(
        "Starting a run creates it here, with all its tasks.",
        "The coordinator, by queuing its first task; or a cancel.",
        "Check that a coordinator leads and that an active worker accepts the kinds of its ready tasks.",
    ),
    RunState.RUNNING: StateHelp(
        "The coordinator, when the first task left ready.",
        "The outcome that makes its last task terminal; or a cancel.",
        "Look at its tasks that are not terminal: each of their states says whom it waits for.",
    ),
    RunState.SUCCEEDED: StateHelp(
        "The last outcome, when every task is terminal and none failed or was canceled.",
        _FINAL,
        _NOTHING_TO_DO,
    ),
    RunState.FAILED: StateHelp(
        "The last outcome, when every task is terminal and at least one failed.",
        _FINAL,
        "Read the error of each failed task, repair the cause, and start the workflow again.",
    ),
    RunState.CANCELED: StateHelp(
        "A cancel request, once every open task was canceled with it.",
        _FINAL,
        "Nothing to do; start the workflow again if the cancel was a mistake.",
    ),
}

_TASK_HELP: dict[StrEnum, StateHelp] = {
    TaskState.WAITING_DEPENDENCIES: StateHelp(
        "Starting a run, for every task that depends on others.",
        "The success of its last open dependency; the failure of an ancestor (skipped); or a cancel.",
        "Look at the tasks it depends on: one of them is not done.",
    ),
    TaskState.READY: StateHelp(
        "Starting a run, the last dependency's success, a due retry, a released lease or a decided approval.",
        "The coordinator, as soon as concurrency, quotas and a compatible worker leave room.",
        "Check that an active worker accepts its kind and labels, and that the run is below its concurrency.",
    ),
    TaskState.QUEUED: StateHelp(
        "The coordinator, which made a dispatch for it; no worker owns it and no attempt is consumed.",
        "The worker that claims it; the coordinator, if no worker accepts it any more; or a cancel.",
        "Check that compatible workers are alive, poll, and have free slots.",
    ),
    TaskState.RUNNING: StateHelp(
        "The worker that claimed it; the claim created the attempt.",
        "The worker's result, the end of its lease or of the attempt's deadline, a release, or a cancel.",
        "Read the attempt's log and progress; the deadline ends it at the latest, and a cancel ends it now.",
    ),
    TaskState.WAITING_RETRY: StateHelp(
        "A failed, timed out or interrupted attempt with retry budget left.",
        "The coordinator, at its retry time; or a cancel.",
        "If the retry time has passed, check that a coordinator leads.",
    ),
    TaskState.WAITING_APPROVAL: StateHelp(
        "An approval task whose turn has come, or an attempt that suspended itself to ask a person.",
        "The person who decides; the expiry of the request; or a cancel.",
        "Decide the open approval. While it waits it holds no worker, no lease and no concurrency.",
    ),
    TaskState.SUCCEEDED: StateHelp(
        "An accepted success result, or an approved gate.",
        _FINAL,
        _NOTHING_TO_DO,
    ),
    TaskState.FAILED: StateHelp(
        "A permanent failure, an exhausted retry budget, or a denied or expired approval.",
        _FINAL,
        "Read the error code and message of its last attempt.",
    ),
    TaskState.CANCELED: StateHelp(
        "A cancel of its run while it was open.",
        _FINAL,
        _NOTHING_TO_DO,
    ),
    TaskState.SKIPPED: StateHelp(
        "The failure of an ancestor: it can never start.",
        _FINAL,
        "Look at the failed ancestor.",
    ),
}

_ATTEMPT_HELP: dict[StrEnum, StateHelp] = {
    AttemptState.RUNNING: StateHelp(
        "The claim that leased its task to a worker.",
        "The worker's result, the reaper (lease or deadline over), a release, a suspension, or a cancel.",
        "Read its log; if its deadline has passed, check that a coordinator leads.",
    ),
    AttemptState.SUCCEEDED: StateHelp("An accepted success result.", _FINAL, _NOTHING_TO_DO),
    AttemptState.FAILED: StateHelp(
        "An accepted temporary or permanent failure.",
        _FINAL,
        "Read its error code and message.",
    ),
    AttemptState.TIMED_OUT: StateHelp(
        "The reaper: its deadline passed. It consumes retry budget.",
        _FINAL,
        "Raise timeout_ms if the work honestly takes longer.",
    ),
    AttemptState.INTERRUPTED: StateHelp(
        "The reaper: its lease ended without a result, mostly because its worker died. It consumes retry "
        "budget, unless the control plane itself was out of reach.",
        _FINAL,
        "If it happens often, look at the worker's host and at its memory.",
    ),
    AttemptState.CANCELED: StateHelp("A cancel of its run while it ran.", _FINAL, _NOTHING_TO_DO),
    AttemptState.RELEASED: StateHelp(
        "The worker gave the lease back unstarted, or never received it. It consumes no retry budget.",
        _FINAL,
        _NOTHING_TO_DO,
    ),
    AttemptState.SUSPENDED: StateHelp(
        "The attempt asked a person and gave its slot back. It consumes no retry budget.",
        _FINAL,
        _NOTHING_TO_DO,
    ),
}

STATE_HELP: Mapping[type[StrEnum], Mapping[StrEnum, StateHelp]] = MappingProxyType(
    {
        RunState: MappingProxyType(_RUN_HELP),
        TaskState: MappingProxyType(_TASK_HELP),
        AttemptState: MappingProxyType(_ATTEMPT_HELP),
    }
)
"""By enum, then by state: in one flat table `RunState.RUNNING` and `TaskState.RUNNING` would be one key."""
