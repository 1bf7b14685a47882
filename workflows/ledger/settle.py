"""Settling attempts: from how an attempt ended to the move of its task. Every ending goes through here.

``complete`` brings results, ``reap`` brings expiries, refused inputs never started. The decision itself,
retry or give up, is the kernel's; this asks it and picks the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from workflows.compiled import compiled_version
from workflows.kernel.retry import FailureKind, RetryAt, decide
from workflows.kernel.states import AttemptState
from workflows.ledger import RunLedger
from workflows.ledger.records import TaskRef


class Ending(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    TEMPORARY = "temporary_failure"
    PERMANENT = "permanent_failure"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    OUTAGE = "outage"
    """Interrupted because the control plane could not be reached: consumes nothing."""
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Ended:
    """One ended attempt. ``attempts_used`` is what its task had consumed before it."""

    task: TaskRef
    number: int
    attempts_used: int
    ending: Ending
    output: str | None = None
    error_code: str = ""
    error_message: str = ""
    reason: str = ""


_FAILURES = {
    Ending.TEMPORARY: (FailureKind.TEMPORARY, AttemptState.FAILED),
    Ending.PERMANENT: (FailureKind.PERMANENT, AttemptState.FAILED),
    Ending.TIMED_OUT: (FailureKind.TIMED_OUT, AttemptState.TIMED_OUT),
    Ending.INTERRUPTED: (FailureKind.INTERRUPTED, AttemptState.INTERRUPTED),
}


def settle_attempts(ledger: RunLedger, ended: Iterable[Ended], *, random: Callable[[], float]) -> None:
    """Move each task by how its attempt ended. ``random`` yields numbers in [0, 1) for retry jitter."""
    for end in ended:
        if end.ending is Ending.SUCCESS:
            ledger.succeed_tasks([(end.task, end.number, end.output)])
        elif end.ending is Ending.RELEASED:
            ledger.release_tasks([(end.task, end.number)], reason=end.reason or "released unstarted")
        elif end.ending is Ending.OUTAGE:
            state = AttemptState.INTERRUPTED
            ledger.retry_tasks(
                [
                    (
                        end.task,
                        end.number,
                        state,
                        ledger.now,
                        False,
                        end.error_code,
                        end.error_message,
                        end.reason,
                    )
                ]
            )
        else:
            _settle_failure(ledger, end, random())


def _settle_failure(ledger: RunLedger, end: Ended, random: float) -> None:
    run = ledger.runs[end.task.run_id]
    policy = compiled_version(run.version_id).definition.tasks[end.task.position].retry
    kind, state = _FAILURES[end.ending]
    decision = decide(
        policy,
        attempts_used=end.attempts_used + 1,
        failure=kind,
        error_code=end.error_code,
        now=ledger.now,
        random=random,
    )
    if isinstance(decision, RetryAt):
        reason = end.reason or "will be tried again"
        ledger.retry_tasks(
            [(end.task, end.number, state, decision.at, True, end.error_code, end.error_message, reason)]
        )
    else:
        ledger.fail_tasks([(end.task, end.number, state, end.error_code, end.error_message, decision.reason)])
