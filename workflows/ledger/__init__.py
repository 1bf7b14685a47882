"""The ledger: the one writer of run history.

::

    with RunLedger.open(run_ids) as ledger:      # inside atomic(durable=True); locks runs in id order
        ledger.claim_tasks(births)               # one method per edge
    # on clean exit, in the same transaction: one UPDATE per edge, successors unlocked, descendants of
    # failures skipped, finished runs settled, one UPDATE of revisions and counters, one insert of events

Moves are checked against the kernel's transition table and every UPDATE is guarded with the state it
leaves. Under the run's lock a differing row count is a bug, so it raises and nothing commits. Losing a
race at the edge is something else: operations find it out before they move, and name it.

The flush happens only on a clean exit. An exception discards the moves and marks the transaction for
rollback, so that nothing else of the operation commits even if someone catches it. Nesting, savepoints
around it and running outside a transaction are refused.

Its cost follows the number of tasks that change. It never reads a whole run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from platform_site.database import require_transaction
from platform_site.statements import Batch, Statements
from workflows.kernel.states import RunState, TaskState
from workflows.ledger.flush import flush
from workflows.ledger.moves import LedgerError, Moves
from workflows.ledger.records import Became, Birth, LockedRun, TaskRef

__all__ = ["Became", "Birth", "LedgerError", "LockedRun", "RunLedger", "TaskRef"]

_sql = Statements("workflows.ledger.sql")
_open: ContextVar[bool] = ContextVar("run_ledger_open", default=False)


class RunLedger(Moves):
    """Moves of locked runs, flushed together. Made by `open` or `over`, never directly."""

    def __init__(self, runs: Sequence[LockedRun], *, actor: str, now: datetime) -> None:
        super().__init__(runs, actor=actor, now=now)
        self.became = Became()

    @classmethod
    @contextmanager
    def open(
        cls, run_ids: Iterable[UUID], *, actor: str = "", then: Batch | None = None
    ) -> Iterator[RunLedger]:
        """Lock the runs plainly by ascending id, then work on them. Unknown ids are simply absent.

        ``then`` holds the operation's further locks: taken behind the runs and before the clock is read.
        """
        with cls._session("lock_runs", sorted(set(run_ids)), actor, then) as ledger:
            yield ledger

    @classmethod
    @contextmanager
    def over(
        cls, run_ids: Iterable[UUID], *, actor: str = "", then: Batch | None = None
    ) -> Iterator[RunLedger]:
        """Work on runs that the operation has locked itself, for instance skip-locked. ``then`` as in `open`."""
        with cls._session("read_runs", list(run_ids), actor, then) as ledger:
            yield ledger

    @classmethod
    @contextmanager
    def _session(
        cls, statement: str, run_ids: list[UUID], actor: str, then: Batch | None
    ) -> Iterator[RunLedger]:
        _refuse_misuse()
        token = _open.set(True)
        try:
            # One round trip; the server runs them in this order, so the clock is read under every lock.
            batch = Batch()
            runs = batch.add(_sql, statement, run_ids=run_ids)
            if then is not None:
                batch.extend(then)
            clock = batch.add(_sql, "read_clock")
            batch.run()
            ledger = cls([_locked_run(row) for row in runs.records()], actor=actor, now=clock.rows[0][0])
            yield ledger
            if ledger.dirty:
                ledger.became = flush(ledger, ledger.now)
        except BaseException:
            transaction.set_rollback(True)
            raise
        finally:
            _open.reset(token)


def _refuse_misuse() -> None:
    require_transaction()
    if _open.get():
        raise LedgerError("A ledger is open already; an operation opens one.")
    # The test case's own transaction around everything is not a savepoint of ours.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    if len(blocks) > 1:
        raise LedgerError(
            "The ledger works in the outermost transaction only; there is a savepoint around it."
        )


def _locked_run(row: dict[str, Any]) -> LockedRun:
    counts = {state: row.pop(f"tasks_{state.value}") for state in TaskState}
    row["state"] = RunState(row["state"])
    return LockedRun(**row, counts=counts)
