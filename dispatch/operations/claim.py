"""Lease pending dispatches to a worker: the attempt is born here.

One call is one or a few short transactions. Each takes its locks in the house order: runs (skip-locked, in the
order of service), then dispatches, then the worker. A claim that finds every candidate run held by others waits
for one of them, in a transaction of its own and under a short lock timeout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, transaction

from dispatch.errors import WorkerCapacityExceeded, WorkerDraining, WorkerSessionInvalid
from dispatch.lease import LIVE_WORKER_STATES, lease_token, token_digest
from dispatch.operations.faults import Faults
from dispatch.operations.inputs import Input, resolve_inputs
from dispatch.operations.locking import (
    LOCK_NOT_AVAILABLE,
    of_a_lock,
    of_the_server,
    set_lock_timeout,
    sqlstate,
)
from dispatch.operations.settling import task_of
from dispatch.sessions import WorkerIdentity, known_classes, learn_classes
from dispatch.statements import sql
from dispatch.states import WorkerState
from platform_site import wake
from platform_site.api.errors import DomainError
from platform_site.database import database_now
from platform_site.statements import Batch
from workflows.compiled import compiled_version, version_number
from workflows.kernel.canonical import JsonValue
from workflows.kernel.definition import CompiledWorkflow
from workflows.ledger import Birth, RunLedger

ROUNDS = 3
MOST_FAILING = 3
"""Runs at fault that one round finds; with more, something else is wrong."""
CLASS_ROUNDS = 3
"""How often a claim reads the task classes again when new ones keep appearing."""
MIN_CANDIDATE_RUNS = 32
CONTENDED_WAIT_MS = 100
CONTENDED_RETRY_MS = 50
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
LEASE_BYTES = 1024
"""What a lease takes of the answer beside its input."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker needs to run one attempt, and to prove that it may."""

    dispatch_id: UUID
    token: str
    generation: int
    run_id: UUID
    workflow: str
    version: int
    task_key: str
    executor_kind: str
    action: str
    input: JsonValue
    attempt: int
    expires_in: timedelta
    deadline_in: timedelta
    traceparent: str

    @property
    def idempotency_key(self) -> str:
        """Stable over every attempt of the task."""
        return f"{self.run_id}/{self.task_key}"


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim. ``retry_after_ms`` is set when the worker had better ask again soon."""

    leases: list[Lease] = field(default_factory=list)
    retry_after_ms: int | None = None
    more_to_queue: bool = False
    came_to_nothing: bool = False
    """Every input was unresolvable and its task failed: there may be more."""


@dataclass(frozen=True, slots=True)
class _Call:
    worker: WorkerIdentity
    session_token: str
    slots: int
    claim_no: int
    lease_duration: timedelta


_faults = Faults()


class _Retry(Exception):
    def __init__(self, run_id: UUID | None) -> None:
        self.run_id = run_id


def claim(
    *,
    worker: WorkerIdentity,
    session_token: str,
    slots: int,
    claim_no: int,
    lease_duration: timedelta,
    wait: bool = True,
) -> Claimed:
    """Lease up to ``slots`` dispatches, or answer again what the call with this number leased.

    When every run with work is held by others one of them is waited for, unless ``wait`` is false.
    Raises WorkerSessionInvalid, WorkerDraining, WorkerCapacityExceeded. No work is an empty answer.
    """
    if slots > worker.max_concurrency:
        raise WorkerCapacityExceeded
    call = _Call(worker, session_token, slots, claim_no, lease_duration)
    claimed = Claimed(retry_after_ms=CONTENDED_RETRY_MS)  # every round came to nothing
    for _ in range(ROUNDS):
        try:
            claimed = _claim_once(call, wait_for=None)
        except _Retry as retry:
            if retry.run_id is None:
                continue
            if not wait:
                break
            claimed = _claim_contended(call, retry.run_id)
        break
    if claimed.more_to_queue:
        wake.coordinator()
    return claimed


def _claim_contended(call: _Call, run_id: UUID) -> Claimed:
    try:
        return _claim_once(call, wait_for=run_id)
    except _Retry:
        return Claimed(retry_after_ms=CONTENDED_RETRY_MS)
    except OperationalError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        return Claimed(retry_after_ms=CONTENDED_RETRY_MS)


def _claim_once(call: _Call, *, wait_for: UUID | None) -> Claimed:
    # Before the transaction: most looks find nothing, and what they find is looked at again under the locks.
    look = _look(call)
    _check_session(look.state)
    if look.answered:
        return Claimed(leases=_repeat(call))
    _check_taking(look.state)
    run_ids = _faults.without(look.run_ids)
    if not run_ids and wait_for is None:
        return Claimed()
    locked: list[UUID] = []
    try:
        return _claim_of(call, look, run_ids, wait_for, locked)
    except (_Retry, DomainError):
        raise
    except Exception as error:
        if not locked or not _of_a_run(error):
            raise
        return _claim_singly(call, look, locked, error)


def _claim_of(
    call: _Call, look: _Look, run_ids: Sequence[UUID], wait_for: UUID | None, locked: list[UUID]
) -> Claimed:
    """One transaction over some of the runs, which it writes down in ``locked``."""
    with transaction.atomic(durable=True):
        locked += _lock_runs(call, run_ids, wait_for)
        claimed = _lease(call, locked, look.classes)
    if claimed is None:  # meanwhile another call with this number was answered
        return Claimed(leases=_repeat(call))
    if claimed.came_to_nothing:  # raised behind the commit: the failures stand, and the worker gets the next
        if claimed.more_to_queue:
            wake.coordinator()
        raise _Retry(None)
    return claimed


def _claim_singly(call: _Call, look: _Look, run_ids: Sequence[UUID], error: Exception) -> Claimed:
    """The first of the runs that can be leased by itself. Those that cannot are left out for a while."""
    if len(run_ids) == 1:
        _faults.note(run_ids[0], error)
        raise _Retry(None)
    for failing, run_id in enumerate(run_ids):
        if failing == MOST_FAILING:
            break
        try:
            return _claim_of(call, look, [run_id], None, [])
        except (_Retry, DomainError):
            raise
        except Exception as fault:
            if not _of_a_run(fault):
                raise
            _faults.note(run_id, fault)
    raise _Retry(None)


def _of_a_run(error: Exception) -> bool:
    return not isinstance(error, DatabaseError) or not (of_a_lock(error) or of_the_server(error))


@dataclass(frozen=True, slots=True)
class _Look:
    state: str
    answered: bool
    run_ids: list[UUID]
    classes: list[int]


def _look(call: _Call) -> _Look:
    known = known_classes(call.worker)
    for _ in range(CLASS_ROUNDS):
        rows = sql.rows(
            "claim_candidates",
            worker_id=call.worker.id,
            claim_no=call.claim_no,
            classes=known.ids,
            runs=max(MIN_CANDIDATE_RUNS, 4 * call.slots),
        )
        if not rows:
            raise WorkerSessionInvalid
        state, answered, classes, highest, run_ids = rows[0]
        if known.version == (classes, highest):
            break
        known = learn_classes(call.worker, (classes, highest))
    return _Look(state, answered, run_ids, known.ids)


def _lock_runs(call: _Call, candidates: Sequence[UUID], wait_for: UUID | None) -> list[UUID]:
    """Lock claimable runs. Raises _Retry if there is none, naming the first if all are held by others."""
    if wait_for is not None:
        set_lock_timeout(CONTENDED_WAIT_MS)
        rows = sql.rows("claim_lock_one_run", run_id=wait_for)
    else:
        rows = sql.rows("claim_lock_runs", run_ids=list(candidates), slots=call.slots)
    if not rows:
        raise _Retry(None if wait_for is not None else candidates[0])
    return [run_id for (run_id,) in rows]


def _check_session(state: str) -> None:
    if state not in LIVE_WORKER_STATES:
        raise WorkerSessionInvalid


def _check_taking(state: str) -> None:
    """A draining worker takes no more, but may hear again what it was given before."""
    if state != WorkerState.ACTIVE:
        raise WorkerDraining


def _lease(call: _Call, run_ids: Sequence[UUID], classes: list[int]) -> Claimed | None:
    """Lease what is pending of the locked runs; None if the call was answered meanwhile.

    Dispatches are locked, then the worker; what it holds is counted in a statement behind its lock, which sees
    what committed while the lock was waited for.
    """
    locks = Batch()
    pending = locks.add(sql, "claim_pending", run_ids=list(run_ids), classes=classes, slots=call.slots)
    worker = locks.add(sql, "lock_worker", worker_id=call.worker.id)
    load = locks.add(sql, "worker_load", worker_id=call.worker.id, claim_no=call.claim_no, classes=classes)
    with RunLedger.over(run_ids, actor=f"worker:{call.worker.display_name}", then=locks) as ledger:
        state = worker.rows[0][0] if worker.rows else WorkerState.OFFLINE
        [(held, answered, more_to_queue)] = load.rows
        _check_session(state)
        if answered:  # asked first: the call that overtook this one may have taken all there was
            return None
        if not pending.rows:
            raise _Retry(None)
        _check_taking(state)
        rows = pending.records()[: max(call.worker.max_concurrency - held, 0)]
        leases = _take(ledger, call, rows)
    return Claimed(
        leases=leases,
        more_to_queue=more_to_queue or ledger.became.worth_a_pass,
        came_to_nothing=bool(rows) and not leases,
    )


def _take(ledger: RunLedger, call: _Call, rows: Sequence[Mapping[str, Any]]) -> list[Lease]:
    versions = {run_id: run.version_id for run_id, run in ledger.runs.items()}
    inputs = resolve_inputs(rows, versions, most_bytes=MAX_RESPONSE_BYTES)
    now = ledger.now
    taken: list[tuple[Birth, Lease]] = []
    refused: list[tuple[Birth, str, str]] = []
    room = MAX_RESPONSE_BYTES
    for row, value in zip(rows, inputs, strict=False):  # they end where the answer is full
        compiled = compiled_version(versions[row["run_id"]])
        birth = _birth(call, row, compiled, now)
        if value.error_code:
            refused.append((_unheld(birth), value.error_code, value.error_message))
            continue
        room -= LEASE_BYTES + value.size
        if room < 0 and taken:
            break
        left = birth.deadline - now
        lease = _lease_of(call, row, versions[row["run_id"]], value, (min(call.lease_duration, left), left))
        taken.append((birth, lease))
    ledger.claim_tasks(birth for birth, _ in taken)
    ledger.refuse_tasks(refused)
    _write_leases(ledger, call, taken, now)
    if refused:
        ids = [birth.dispatch_id for birth, _, _ in refused]
        ledger.batch.add(sql, "cancel_dispatches", len(ids), ids=ids, now=now)
    return [lease for _, lease in taken]


def _birth(call: _Call, row: Mapping[str, Any], compiled: CompiledWorkflow, now: datetime) -> Birth:
    timeout = timedelta(milliseconds=compiled.definition.tasks[row["position"]].timeout_ms)
    return Birth(
        task=task_of(row),
        number=row["attempts"] + 1,
        deadline=now + timeout,
        dispatch_id=row["id"],
        worker_id=call.worker.id,
        worker_name=call.worker.display_name,
        generation=row["generation"],
    )


def _unheld(birth: Birth) -> Birth:
    return Birth(birth.task, birth.number, birth.deadline, birth.dispatch_id)


def _lease_of(
    call: _Call, row: Mapping[str, Any], version_id: int, value: Input, left: tuple[timedelta, timedelta]
) -> Lease:
    """The lease of such a row; ``left`` is the time of the lease and of the attempt."""
    return Lease(
        dispatch_id=row["id"],
        token=lease_token(call.session_token, row["id"], row["generation"]),
        generation=row["generation"],
        run_id=row["run_id"],
        workflow=compiled_version(version_id).definition.id,
        version=version_number(version_id),
        task_key=row["key"],
        executor_kind=row["executor_kind"],
        action=row["action"],
        input=value.value,
        attempt=row["attempts"] + 1,
        expires_in=left[0],
        deadline_in=left[1],
        traceparent=row["traceparent"],
    )


def _write_leases(
    ledger: RunLedger, call: _Call, taken: Sequence[tuple[Birth, Lease]], now: datetime
) -> None:
    if not taken:
        return
    ledger.batch.add(
        sql,
        "lease_dispatches",
        len(taken),
        worker_id=call.worker.id,
        claim_no=call.claim_no,
        now=now,
        ids=[lease.dispatch_id for _, lease in taken],
        numbers=[lease.attempt for _, lease in taken],
        generations=[lease.generation for _, lease in taken],
        digests=[token_digest(lease.token) for _, lease in taken],
        expires_ats=[now + lease.expires_in for _, lease in taken],
        deadlines=[birth.deadline for birth, _ in taken],
    )


def _repeat(call: _Call) -> list[Lease]:
    """What this call leased when it was answered the first time and the worker still holds; a read."""
    rows = sql.records("leases_of_claim", worker_id=call.worker.id, claim_no=call.claim_no)
    versions = {row["run_id"]: row["version_id"] for row in rows}
    inputs = list(resolve_inputs(rows, versions, most_bytes=None))
    now = database_now()
    leases = []
    for row, value in zip(rows, inputs, strict=True):
        left = (row["lease_expires_at"] - now, row["attempt_deadline"] - now)
        if left[0] > timedelta():
            leases.append(_lease_of(call, row, row["version_id"], value, left))
    return leases
