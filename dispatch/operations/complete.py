"""Accept results under their leases: the one way in for what workers did.

Runs are locked by ascending id, then the dispatches. A result is settled only if its lease is valid at the
database's clock, read after those locks; whatever is refused changes nothing. One bad item never spoils the
others, and one busy run holds only its own results up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from random import random
from typing import Any
from uuid import UUID

from django.db import OperationalError, transaction

from dispatch.lease import owns, valid
from dispatch.operations.locking import (
    DEADLOCK_DETECTED,
    LOCK_NOT_AVAILABLE,
    set_lock_timeout,
    sqlstate,
)
from dispatch.operations.results import CheckedResult
from dispatch.operations.settling import LeaseLocks, held_lease, stop_if_drained, task_of
from dispatch.statements import sql
from dispatch.states import DispatchState
from platform_site import wake
from workflows.ledger import RunLedger
from workflows.ledger.settle import Ended, settle_attempts

LOCK_TIMEOUT_MS = 1000


class Outcome(StrEnum):
    """What became of one result."""

    APPLIED = "applied"
    REPLAYED = "replayed"
    LEASE_LOST = "lease_lost"
    RESULT_CONFLICT = "result_conflict"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Item:
    """One result and the proof that it may be given."""

    dispatch_id: UUID
    lease_token: str
    result: CheckedResult


def complete(*, worker_id: UUID, items: Sequence[Item]) -> list[Outcome]:
    """Settle every item whose lease is valid and say for each what became of it, in order."""
    run_of = dict(sql.rows("runs_of_dispatches", ids=[item.dispatch_id for item in items]))
    outcomes = [Outcome.LEASE_LOST] * len(items)
    known = [index for index, item in enumerate(items) if item.dispatch_id in run_of]
    run_ids = sorted({run_of[items[index].dispatch_id] for index in known})
    settled = _settle(worker_id, [items[index] for index in known], run_ids)
    if settled is not None:
        return _place(outcomes, known, settled)
    for run_id in run_ids:
        some = [index for index in known if run_of[items[index].dispatch_id] == run_id]
        settled = _settle(worker_id, [items[index] for index in some], [run_id])
        _place(outcomes, some, settled or [Outcome.RETRY] * len(some))
    return outcomes


def _place(outcomes: list[Outcome], indexes: Sequence[int], settled: Sequence[Outcome]) -> list[Outcome]:
    for index, outcome in zip(indexes, settled, strict=True):
        outcomes[index] = outcome
    return outcomes


def _settle(worker_id: UUID, items: Sequence[Item], run_ids: Sequence[UUID]) -> list[Outcome] | None:
    """One transaction over these runs. None if a lock could not be had in time: nothing was done."""
    if not items:
        return []
    try:
        with transaction.atomic(durable=True):
            if len(run_ids) > 1:  # a single run is waited for; it can be nobody else's hold-up
                set_lock_timeout(LOCK_TIMEOUT_MS)
            locks = LeaseLocks(item.dispatch_id for item in items)
            with RunLedger.open(run_ids, actor="worker", then=locks.batch) as ledger:
                rows = locks.rows()
                outcomes, accepted = _judge(worker_id, items, rows, ledger.now)
                settle_attempts(ledger, (_ended(item, rows) for item in accepted), random=random)
                _complete_dispatches(ledger, accepted)
            stop_if_drained(rows.values(), now=ledger.now)
    except OperationalError as error:
        if sqlstate(error) not in (LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED):
            raise
        return None
    if ledger.became.worth_a_pass:
        wake.coordinator()
    return outcomes


def _judge(
    worker_id: UUID, items: Sequence[Item], rows: Mapping[UUID, Mapping[str, Any]], now: datetime
) -> tuple[list[Outcome], list[Item]]:
    outcomes: list[Outcome] = []
    accepted: dict[UUID, Item] = {}
    for item in items:
        row = rows.get(item.dispatch_id)
        earlier = accepted.get(item.dispatch_id)
        if row is None or not owns(held_lease(row), worker_id=worker_id, token=item.lease_token):
            outcomes.append(Outcome.LEASE_LOST)
        elif earlier is not None or row["state"] == DispatchState.COMPLETED:
            digest = earlier.result.digest if earlier else bytes(row["result_digest"])
            same = digest == item.result.digest
            outcomes.append(Outcome.REPLAYED if same else Outcome.RESULT_CONFLICT)
        elif valid(held_lease(row), now=now):
            accepted[item.dispatch_id] = item
            outcomes.append(Outcome.APPLIED)
        else:
            outcomes.append(Outcome.LEASE_LOST)
    return outcomes, list(accepted.values())


def _ended(item: Item, rows: Mapping[UUID, Mapping[str, Any]]) -> Ended:
    row = rows[item.dispatch_id]
    return Ended(
        task=task_of(row),
        number=row["attempt_number"],
        attempts_used=row["attempts_used"],
        ending=item.result.ending,
        output=item.result.output,
        error_code=item.result.error_code,
        error_message=item.result.error_message,
    )


def _complete_dispatches(ledger: RunLedger, accepted: Sequence[Item]) -> None:
    if accepted:
        ledger.batch.add(
            sql,
            "complete_dispatches",
            len(accepted),
            ids=[item.dispatch_id for item in accepted],
            digests=[item.result.digest for item in accepted],
            now=ledger.now,
        )
