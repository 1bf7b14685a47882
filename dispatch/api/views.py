"""The worker protocol, version 1: authenticate, parse, one call, present."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from dispatch.api import docs
from dispatch.api.authentication import CHALLENGE, IsWorker, SessionAuthentication, worker_of
from dispatch.api.presenters import present_beat, present_leases, present_worker
from dispatch.api.shapes import (
    ClaimRequest,
    CompleteRequest,
    CompletionsRequest,
    HeartbeatRequest,
    LogsRequest,
    ProgressRequest,
    RefillRequest,
    RegisterRequest,
    ReleaseRequest,
)
from dispatch.errors import (
    Contended,
    LeaseLost,
    ResultConflict,
    WorkerDraining,
    WorkerProtocolUnsupported,
    WorkerSessionInvalid,
)
from dispatch.operations.claim import Claimed, claim
from dispatch.operations.complete import Item, Outcome, complete
from dispatch.operations.drain import drain
from dispatch.operations.heartbeat import NamedLease, heartbeat
from dispatch.operations.register import PROTOCOL_VERSION, register
from dispatch.operations.release import release
from dispatch.operations.report import report_logs, report_progress
from dispatch.operations.results import judge_result
from dispatch.queries import worker_detail
from dispatch.sessions import WorkerIdentity
from dispatch.wakeup import process_wakeups
from platform_site.access.authentication import TokenAuthentication
from platform_site.access.permissions import CanEnrol
from platform_site.api.errors import DomainError
from platform_site.api.handler import describe
from platform_site.api.rendering import json_answer
from platform_site.api.shapes import Empty, read
from platform_site.api.timing import measured
from platform_site.api.views import ApiView

PROTOCOL_HEADER = "X-Worker-Protocol-Version"
NO_PLACE_RETRY_MS = 250
"""Every place to wait in is taken: the worker asks again, in its own time but not before this."""
REFILL_RETRY_MS = 250

logger = logging.getLogger(__name__)


class ProtocolView(ApiView):
    """Speaks version 1 of the worker protocol, and says so."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        spoken = request.headers.get(PROTOCOL_HEADER)
        if request.method == "POST" and spoken != str(PROTOCOL_VERSION):  # another method is 405
            raise WorkerProtocolUnsupported(f"The header {PROTOCOL_HEADER} must be {PROTOCOL_VERSION}.")

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        response[PROTOCOL_HEADER] = str(PROTOCOL_VERSION)
        return response


class WorkerView(ProtocolView):
    """A call of a worker's session on its own address."""

    authentication_classes = [SessionAuthentication]
    permissions = {"POST": IsWorker}

    worker: WorkerIdentity

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        worker = worker_of(request)
        if worker is None or worker.id != kwargs["worker_id"]:
            raise WorkerSessionInvalid(headers={"WWW-Authenticate": CHALLENGE})
        self.worker = worker


class Register(ProtocolView):
    """The start of a worker process."""

    authentication_classes = [TokenAuthentication]
    permissions = {"POST": CanEnrol}

    @docs.register
    def post(self, request: Request) -> HttpResponse:
        document = self.document()
        version = document.get("protocol_version") if isinstance(document, dict) else None
        if type(version) is int and version != PROTOCOL_VERSION:
            raise WorkerProtocolUnsupported  # before the rest: another version need not look like ours
        asked = read(RegisterRequest, document)
        with measured("register"):
            registered = register(
                display_name=asked.display_name.strip(),
                protocol_version=asked.protocol_version,
                executor_kinds=asked.executor_kinds,
                max_concurrency=asked.max_concurrency,
                labels=asked.labels,
                drills=asked.drills,
                tenant_id=self.principal.tenant_id,
            )
        body = {
            "worker_id": registered.worker_id,
            "session_token": registered.session_token,
            "heartbeat_interval_ms": settings.WORKLOAD.heartbeat_interval_ms,
            "lease_duration_ms": settings.WORKLOAD.lease_duration_ms,
            "protocol_version": PROTOCOL_VERSION,
        }
        return json_answer(body, status=201)


class Claims(WorkerView):
    """Ask for work, and wait for it."""

    @docs.claim
    def post(self, request: Request, worker_id: UUID) -> HttpResponse:
        asked = read(ClaimRequest, self.document())
        arrived = looked = time.monotonic()

        def look() -> Claimed:
            nonlocal looked
            looked = time.monotonic()
            return claim_measured(self.worker, request, asked.slots, asked.claim_no)

        wait = min(asked.wait_ms, settings.WORKLOAD.claim_wait_max_ms) / 1000
        refused = False
        if wait > 0:
            waited = process_wakeups().wait(
                look, acceptor=self.worker.acceptor, timeout=wait, done=_worth_answering
            )
            claimed, refused = waited.found, waited.refused
        else:
            claimed = look()
        body: dict[str, Any] = {
            "leases": present_leases(claimed.leases),
            "waited_ms": int((looked - arrived) * 1000),
        }
        if claimed.retry_after_ms is not None:
            body["retry_after_ms"] = claimed.retry_after_ms
        elif refused and not claimed.leases:
            body["retry_after_ms"] = NO_PLACE_RETRY_MS
        return json_answer(body)


def _worth_answering(claimed: Claimed) -> bool:
    return bool(claimed.leases) or claimed.retry_after_ms is not None


def claim_measured(
    worker: WorkerIdentity, request: Request, slots: int, claim_no: int, *, wait: bool = True
) -> Claimed:
    """One claim of a worker, counted as empty if there was nothing."""
    with measured("claim") as timing:
        claimed = claim(
            worker=worker,
            session_token=str(request.auth),
            slots=slots,
            claim_no=claim_no,
            lease_duration=lease_duration(),
            wait=wait,
        )
        if not claimed.leases:
            timing.outcome = "empty"
        return claimed


def lease_duration() -> timedelta:
    """How long a lease lives without a heartbeat."""
    return timedelta(milliseconds=settings.WORKLOAD.lease_duration_ms)


class Heartbeats(WorkerView):
    """Renew leases, and be heard from."""

    @docs.heartbeat
    def post(self, request: Request, worker_id: UUID) -> HttpResponse:
        asked = read(HeartbeatRequest, self.document())
        with measured("heartbeat"):
            beat = heartbeat(
                worker_id=self.worker.id,
                leases=[NamedLease(named.dispatch_id, named.lease_token) for named in asked.leases],
                answered_through=asked.answered_through,
                lease_duration=lease_duration(),
            )
        return json_answer(present_beat(beat))


class Complete(WorkerView):
    """One result."""

    repair_text = True

    @docs.complete
    def post(self, request: Request, worker_id: UUID, dispatch_id: UUID) -> HttpResponse:
        asked = read(CompleteRequest, self.document())
        item = Item(dispatch_id, asked.lease_token, judge_result(asked.result))
        with measured("complete"):
            (outcome,) = complete(worker_id=self.worker.id, items=[item])
            if outcome in REFUSED:
                raise REFUSED[outcome]
        return json_answer({"outcome": outcome.value})


REFUSED: dict[Outcome, type[DomainError]] = {
    Outcome.LEASE_LOST: LeaseLost,
    Outcome.RESULT_CONFLICT: ResultConflict,
    Outcome.RETRY: Contended,
}


class Completions(WorkerView):
    """Many results, and the next leases in the same round trip."""

    repair_text = True

    @docs.completions
    def post(self, request: Request, worker_id: UUID) -> HttpResponse:
        asked = read(CompletionsRequest, self.document())
        items = [Item(item.dispatch_id, item.lease_token, judge_result(item.result)) for item in asked.items]
        with measured("completions"):
            outcomes = complete(worker_id=self.worker.id, items=items)
        body: dict[str, Any] = {
            "outcomes": [
                {"dispatch_id": str(item.dispatch_id), "outcome": outcome.value}
                for item, outcome in zip(items, outcomes, strict=True)
            ],
            "leases": [],
        }
        if asked.refill is not None:
            body |= _refilled(self.worker, request, asked.refill)
        return json_answer(body)


def _refilled(worker: WorkerIdentity, request: Request, asked: RefillRequest) -> dict[str, Any]:
    """The leases of a refill. The results are committed: whatever goes wrong here is told beside them."""
    try:
        claimed = claim_measured(worker, request, asked.slots, asked.claim_no, wait=False)
    except WorkerDraining:
        return {}
    except Exception as error:
        found = describe(error)
        if found.status >= 500:
            logger.exception("A refill failed.", extra={"error_code": found.code})
        return {"refill": {"code": found.code, "retry_after_ms": REFILL_RETRY_MS}}
    return {"leases": present_leases(claimed.leases)}


class Release(WorkerView):
    """Give a lease back unstarted."""

    @docs.release
    def post(self, request: Request, worker_id: UUID, dispatch_id: UUID) -> HttpResponse:
        asked = read(ReleaseRequest, self.document())
        with measured("release"):
            outcome = release(
                worker_id=self.worker.id, dispatch_id=dispatch_id, lease_token=asked.lease_token
            )
        return json_answer({"outcome": outcome.value})


class Progress(WorkerView):
    """How far an attempt is."""

    repair_text = True

    @docs.progress
    def post(self, request: Request, worker_id: UUID, dispatch_id: UUID) -> HttpResponse:
        asked = read(ProgressRequest, self.document())
        with measured("progress"):
            report_progress(
                worker_id=self.worker.id,
                dispatch_id=dispatch_id,
                lease_token=asked.lease_token,
                percent=None if asked.percent is None else int(asked.percent),
                text=asked.text,
            )
        return json_answer({})


class Logs(WorkerView):
    """What an attempt logged."""

    repair_text = True

    @docs.logs
    def post(self, request: Request, worker_id: UUID, dispatch_id: UUID) -> HttpResponse:
        asked = read(LogsRequest, self.document())
        with measured("logs"):
            kept = report_logs(
                worker_id=self.worker.id,
                dispatch_id=dispatch_id,
                lease_token=asked.lease_token,
                lines=[(line.level, line.text) for line in asked.lines],
            )
        return json_answer({"accepted": kept.accepted, "truncated": kept.truncated})


class Drain(WorkerView):
    """Finish and leave."""

    empty_body = True

    @docs.drain
    def post(self, request: Request, worker_id: UUID) -> HttpResponse:
        read(Empty, self.document())
        with measured("drain"):
            drain(worker_id=self.worker.id)
        worker = worker_detail(tenant_id=self.worker.tenant_id, worker_id=self.worker.id)
        if worker is None:
            raise WorkerSessionInvalid(headers={"WWW-Authenticate": CHALLENGE})
        return json_answer(present_worker(worker))
