"""Accept results under their leases: the one way in for what workers did.

Runs are locked by ascending id, then the dispatches. A result is settled only if its lease is valid at the
database's clock, read after those locks; whatever is refused changes nothing. One bad item never spoils the
others, and one busy run holds only its own results up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from random import random
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction

from dispatch.lease import owns, valid
from dispatch.operations.locking import of_a_lock, of_the_server, set_lock_timeout
from dispatch.operations.results import CheckedResult
from dispatch.operations.settling import LeaseLocks, held_lease, stop_if_drained, task_of
from dispatch.statements import sql
from dispatch.states import DispatchState
from platform_site import wake
from workflows.ledger import RunLedger
from workflows.ledger.settle import Ended, settle_attempts

LOCK_TIMEOUT_MS = 1000
RUN_BY_RUN_SECONDS = 3.0
"""How long one call goes on when its runs must be settled one by one."""

logger = logging.getLogger(__name__)


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
    by_run: dict[UUID, list[int]] = {}
    for index, item in enumerate(items):
        if item.dispatch_id in run_of:
            by_run.setdefault(run_of[item.dispatch_id], []).append(index)
    known = [index for indexes in by_run.values() for index in indexes]
    for index, outcome in zip(known, _settle_all(worker_id, items, by_run), strict=True):
        outcomes[index] = outcome
    return outcomes


def _settle_all(
    worker_id: UUID, items: Sequence[Item], by_run: Mapping[UUID, Sequence[int]]
) -> list[Outcome]:
    """The outcomes of the items, run after run: in one transaction, or if that fails in one for each run."""
    parts = {run_id: [items[index] for index in indexes] for run_id, indexes in by_run.items()}
    every = [item for part in parts.values() for item in part]
    if len(parts) < 2:  # a single run is waited for; it can be nobody else's hold-up
        return _settle(worker_id, every, list(parts), None) or [Outcome.RETRY] * len(every)
    try:
        settled = _settle(worker_id, every, list(parts), LOCK_TIMEOUT_MS)
    except Exception as error:
        if isinstance(error, DatabaseError) and of_the_server(error):
            raise
        logger.warning("Results of several runs are settled run by run.", exc_info=True)
        settled = None
    return _run_by_run(worker_id, parts) if settled is None else settled


def _run_by_run(worker_id: UUID, parts: Mapping[UUID, Sequence[Item]]) -> list[Outcome]:
    """One transaction a run, as far as the time goes; what is not settled then is to be sent again.

    What committed is answered: an error is raised only if every run failed or was left.
    """
    outcomes: dict[UUID, list[Outcome]] = {}
    failure: Exception | None = None
    until = time.monotonic() + RUN_BY_RUN_SECONDS
    for run_id in sorted(parts):
        left_ms = int(1000 * (until - time.monotonic()))
        if left_ms <= 0:
            break
        try:
            settled = _settle(worker_id, parts[run_id], [run_id], min(LOCK_TIMEOUT_MS, left_ms))
        except Exception as error:
            logger.exception("Results of run %s cannot be settled.", run_id)
            failure = failure or error
        else:
            if settled is not None:
                outcomes[run_id] = settled
    if failure is not None and not outcomes:
        raise failure
    return [
        one for run_id, part in parts.items() for one in outcomes.get(run_id, [Outcome.RETRY] * len(part))
    ]


def _settle(
    worker_id: UUID, items: Sequence[Item], run_ids: Sequence[UUID], lock_timeout_ms: int | None
) -> list[Outcome] | None:
    """One transaction over these runs. None if a lock could not be had in time: nothing was done."""
    if not items:
        return []
    try:
        with transaction.atomic(durable=True):
            if lock_timeout_ms is not None:
                set_lock_timeout(lock_timeout_ms)
            locks = LeaseLocks(item.dispatch_id for item in items)
            with RunLedger.open(run_ids, actor="worker", then=locks.batch) as ledger:
                rows = locks.rows()
                outcomes, accepted = _judge(worker_id, items, rows, ledger.now)
                settle_attempts(ledger, (_ended(item, rows) for item in accepted), random=random)
                _complete_dispatches(ledger, accepted)
            stop_if_drained(rows.values(), now=ledger.now)
    except DatabaseError as error:
        if not of_a_lock(error):
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
