"""Ask for runs to be canceled. The intent is what commits; a coordinator pass converges it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from platform_site import wake
from workflows.errors import RunNotFound
from workflows.kernel.states import RunState
from workflows.ledger import RunLedger


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """How a run stood when its cancel was asked for.

    ``requested`` is True if this call recorded the intent; a run that was asked before, or is finished, is
    left as it is.
    """

    run_id: UUID
    state: RunState
    cancel_requested_at: datetime | None
    requested: bool


def request_cancel(*, run_ids: Sequence[UUID], tenant_id: int | None, actor: str) -> list[CancelAnswer]:
    """Record the intent for the open ones among these runs and say how each stood.

    ``tenant_id`` None is for callers that see every tenant. Raises RunNotFound if any run is not the
    tenant's, and records nothing then. Locks the runs.
    """
    with transaction.atomic(durable=True), RunLedger.open(run_ids, actor=actor) as ledger:
        runs = [ledger.runs.get(run_id) for run_id in dict.fromkeys(run_ids)]
        if any(run is None or tenant_id not in (None, run.tenant_id) for run in runs):
            raise RunNotFound
        fresh = [run.id for run in runs if run is not None and run.dispatchable]
        ledger.request_cancel(fresh)
        answers = [
            CancelAnswer(
                run_id=run.id,
                state=run.state,
                cancel_requested_at=ledger.now if run.id in fresh else run.cancel_requested_at,
                requested=run.id in fresh,
            )
            for run in runs
            if run is not None
        ]
    if fresh:
        wake.coordinator()
    return answers
