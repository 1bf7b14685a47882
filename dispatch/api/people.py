"""Workers for people and tools, and the cancel of a run, which this app carries out."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import OperationalError
from django.http import HttpResponse
from rest_framework.request import Request

from dispatch.api import docs
from dispatch.api.presenters import present_worker
from dispatch.errors import WorkerNotFound
from dispatch.operations.converge_cancellations import converge_cancellation
from dispatch.queries import worker_detail, workers_page
from dispatch.states import WorkerState
from platform_site import wake
from platform_site.access.permissions import CanOperate, CanView
from platform_site.api.rendering import json_answer
from platform_site.api.serializers import QuerySerializer
from platform_site.api.shapes import Empty, read
from platform_site.api.timing import measured
from platform_site.api.views import ApiView
from workflows.kernel.states import RunState
from workflows.operations.request_cancel import CancelAnswer, request_cancel

logger = logging.getLogger(__name__)


class Workers(ApiView):
    """All workers that may serve the tenant."""

    permissions = {"GET": CanView}

    @docs.list_workers
    def get(self, request: Request) -> HttpResponse:
        asked = self.parse_query(docs.WorkerQuery)
        page = workers_page(
            tenant_id=self.principal.tenant_id,
            states=frozenset(map(WorkerState, asked.get("state", ()))),
            cursor=asked["cursor"],
            limit=asked["limit"],
        )
        return json_answer(page.map(present_worker).as_json())


class Worker(ApiView):
    """One worker."""

    permissions = {"GET": CanView}

    @docs.get_worker
    def get(self, request: Request, worker_id: UUID) -> HttpResponse:
        self.parse_query(QuerySerializer)
        worker = worker_detail(tenant_id=self.principal.tenant_id, worker_id=worker_id)
        if worker is None:
            raise WorkerNotFound
        return json_answer(present_worker(worker))


class Cancel(ApiView):
    """Cancel a run."""

    permissions = {"POST": CanOperate}
    empty_body = True

    @docs.cancel
    def post(self, request: Request, run_id: UUID) -> HttpResponse:
        read(Empty, self.document())
        actor = str(self.principal)
        with measured("request_cancel"):
            (answer,) = request_cancel(run_ids=[run_id], tenant_id=self.principal.tenant_id, actor=actor)
        state = answer.state
        if not state.terminal and converged_now(run_id, actor=actor):
            state = RunState.CANCELED
        return json_answer(_present(answer, state))


def converged_now(run_id: UUID, *, actor: str) -> bool:
    """Carry the cancel out at once, a shortcut: the intent is committed, and a coordinator's pass will do it too.

    So whatever fails here is logged and not told to the caller, whose request has succeeded.
    """
    try:
        with measured("converge_cancellations"):
            converged = converge_cancellation(run_id, actor=actor)
    except OperationalError:
        logger.warning("A cancel is left to the coordinator.", exc_info=True)
        return False
    except Exception:
        logger.exception("A cancel is left to the coordinator.")
        return False
    if converged:
        wake.coordinator()  # its places are free for others
    return converged


def _present(answer: CancelAnswer, state: RunState) -> dict[str, Any]:
    ended = "canceled" if state is RunState.CANCELED else "finished"
    return {
        "run_id": answer.run_id,
        "state": state,
        "outcome": ended if state.terminal else "requested",
        "cancel_requested_at": answer.cancel_requested_at,
    }
