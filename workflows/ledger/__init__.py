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

from platform_site.database import database_now, require_transaction
from platform_site.statements import Statements
from workflows.kernel.states import RunState, TaskState
from workflows.ledger.flush import flush
from workflows.ledger.moves import LedgerError, Moves
from workflows.ledger.records import Became, Birth, LockedRun, TaskRef

__all__ = ["Became", "Birth", "LedgerError", "LockedRun", "RunLedger", "TaskRef"]

_sql = Statements("workflows.ledger.sql")
_open: ContextVar[bool] = ContextVar("run_ledger_open", default=False)


class RunLedger(Moves):
    """Moves of locked runs, flushed together. Made by `open` or `over`, never directly."""

    def __init__(self, runs: Sequence[LockedRun], *, actor: str) -> None:
        super().__init__(runs, actor=actor)
        self._now: datetime | None = None
        self.became = Became()

    @classmethod
    @contextmanager
    def open(cls, run_ids: Iterable[UUID], *, actor: str = "") -> Iterator[RunLedger]:
        """Lock the runs plainly by ascending id, then work on them. Unknown ids are simply absent."""
        with cls._session(_sql.records("lock_runs", run_ids=sorted(set(_checked(run_ids)))), actor) as ledger:
            yield ledger

    @classmethod
    @contextmanager
    def over(cls, run_ids: Iterable[UUID], *, actor: str = "") -> Iterator[RunLedger]:
        """Work on runs that the operation has locked itself, for instance skip-locked."""
        with cls._session(_sql.records("read_runs", run_ids=_checked(run_ids)), actor) as ledger:
            yield ledger

    @classmethod
    @contextmanager
    def _session(cls, rows: list[dict[str, Any]], actor: str) -> Iterator[RunLedger]:
        if _open.get():
            raise LedgerError("A ledger is open already; an operation opens one.")
        ledger = cls([_locked_run(row) for row in rows], actor=actor)
        token = _open.set(True)
        try:
            yield ledger
            if ledger.dirty:
                ledger.became = flush(ledger, ledger.now)
        except BaseException:
            transaction.set_rollback(True)
            raise
        finally:
            _open.reset(token)

    @property
    def now(self) -> datetime:
        """Database time, read once, when first asked for: ask after every lock is held."""
        if self._now is None:
            self._now = database_now()
        return self._now


def _checked(run_ids: Iterable[UUID]) -> list[UUID]:
    require_transaction()
    # The test case's own transaction around everything is not a savepoint of ours.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    if len(blocks) > 1:
        raise LedgerError(
            "The ledger works in the outermost transaction only; there is a savepoint around it."
        )
    return list(run_ids)


def _locked_run(row: dict[str, Any]) -> LockedRun:
    counts = {state: row.pop(f"tasks_{state.value}") for state in TaskState}
    row["state"] = RunState(row["state"])
    return LockedRun(**row, counts=counts)
