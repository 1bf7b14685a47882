"""What the API description says of the worker protocol, of workers, and of cancel."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers

from dispatch.api import answers, shapes
from dispatch.states import WorkerState
from platform_site.api.serializers import PageQuery, StrictChoiceField
from platform_site.api.shapes import Empty

PROTOCOL = ["worker protocol"]
WORKERS = ["workers"]
WORKER_ID = "01932c07-5d4e-7a51-9d0b-6a3f5d1c2b71"
DISPATCH_ID = "01932c07-5d4e-7a51-9d0b-6a3f5d1c2b72"
RUN_ID = "01932c07-5d4e-7a51-9d0b-6a3f5d1c2b70"
TOKEN = "pXq0l5eZ0y8cYb7u1o3m9Q2rT4vW6xK8zA1bC3dE5fG"  # noqa: S105 - an example's, of no session

PROTOCOL_VERSION = OpenApiParameter(
    "X-Worker-Protocol-Version",
    str,
    OpenApiParameter.HEADER,
    required=True,
    enum=["1"],
    description="The version of the protocol that the worker speaks; comes back in the answer.",
)

_LEASE = {
    "dispatch_id": DISPATCH_ID,
    "lease_token": TOKEN,
    "generation": 7041,
    "idempotency_key": f"{RUN_ID}/fetch",
    "run_id": RUN_ID,
    "workflow_id": "nightly-report",
    "workflow_version": 1,
    "task_key": "fetch",
    "executor_kind": "python",
    "action": "reports.fetch",
    "input": {"day": "2026-05-03"},
    "attempt": 1,
    "lease_remaining_ms": 14998,
    "attempt_remaining_ms": 299998,
}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # the library's own
    target_class = "dispatch.api.authentication.SessionAuthentication"
    name = "worker_session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The session token that a worker's registration was answered with.",
        }


class WorkerQuery(PageQuery):
    """Filters of the list of workers."""

    state = serializers.ListField(
        child=StrictChoiceField(choices=[state.value for state in WorkerState]),
        required=False,
        max_length=len(WorkerState),
        help_text="In one of these states; may be repeated.",
    )


def _sent(value: Any) -> OpenApiExample:
    return OpenApiExample("Request", value=value, request_only=True)


def _answered(value: Any, status: int = 200) -> OpenApiExample:
    return OpenApiExample("Answer", value=value, response_only=True, status_codes=[str(status)])


_CALL: dict[str, Any] = {"tags": PROTOCOL, "parameters": [PROTOCOL_VERSION]}

register = extend_schema(
    operation_id="register_worker",
    summary="Register a worker process",
    description="With a worker-enrolment token, at every start of the process. The worker serves the tenant of "
    "the token. The session token is returned this once.",
    request=shapes.RegisterRequest,
    responses={201: answers.Registered},
    examples=[
        _sent(
            {
                "display_name": "reports-1",
                "protocol_version": 1,
                "executor_kinds": ["python"],
                "max_concurrency": 16,
                "labels": {"zone": "eu"},
                "drills": False,
            }
        ),
        _answered(
            {
                "worker_id": WORKER_ID,
                "session_token": TOKEN,
                "heartbeat_interval_ms": 5000,
                "lease_duration_ms": 15000,
                "protocol_version": 1,
            },
            201,
        ),
    ],
    **_CALL,
)
claim = extend_schema(
    operation_id="claim_leases",
    summary="Ask for work",
    description="Leases up to `slots` tasks of the worker's kinds. With `wait_ms` the call is held until there "
    "is one. No work is an empty list. A call whose answer was lost is sent again with the same `claim_no` and "
    "gives the same leases.",
    request=shapes.ClaimRequest,
    responses=answers.Claimed,
    examples=[
        _sent({"slots": 4, "wait_ms": 20000, "claim_no": 12}),
        _answered({"leases": [_LEASE], "waited_ms": 0}),
    ],
    **_CALL,
)
heartbeat = extend_schema(
    operation_id="heartbeat",
    summary="Renew leases, and be heard from",
    description="Names every lease that the worker holds; idle workers send it too. A lease of a call up to "
    "`answered_through` that is not named never reached the worker and is taken back.",
    request=shapes.HeartbeatRequest,
    responses=answers.Heartbeat,
    examples=[
        _sent({"leases": [{"dispatch_id": DISPATCH_ID, "lease_token": TOKEN}], "answered_through": 12}),
        _answered(
            {
                "worker_state": "active",
                "leases": [{"dispatch_id": DISPATCH_ID, "status": "renewed", "lease_remaining_ms": 15000}],
            }
        ),
    ],
    **_CALL,
)
complete = extend_schema(
    operation_id="complete_lease",
    summary="Submit one result",
    description="A repeat with the same result is `replayed`; with another one it is `result_conflict`. Over "
    "is `lease_lost`, and nothing was changed.",
    request=shapes.CompleteRequest,
    responses=answers.Completed,
    examples=[
        _sent({"lease_token": TOKEN, "result": {"kind": "success", "output": {"rows": 3}}}),
        _answered({"outcome": "applied"}),
    ],
    **_CALL,
)
completions = extend_schema(
    operation_id="complete_many",
    summary="Submit many results, and take the next leases",
    description="Each item has its own outcome: one bad item never spoils the others. A refill that fails "
    "after the results were settled is told in `refill`; the outcomes stand.",
    request=shapes.CompletionsRequest,
    responses=answers.Completions,
    examples=[
        _sent(
            {
                "items": [
                    {"dispatch_id": DISPATCH_ID, "lease_token": TOKEN, "result": {"kind": "success"}},
                ],
                "refill": {"slots": 1, "claim_no": 13},
            }
        ),
        _answered({"outcomes": [{"dispatch_id": DISPATCH_ID, "outcome": "applied"}], "leases": []}),
    ],
    **_CALL,
)
release = extend_schema(
    operation_id="release_lease",
    summary="Give a lease back unstarted",
    description="The task is ready again, and nothing of its retry budget is used.",
    request=shapes.ReleaseRequest,
    responses=answers.Completed,
    examples=[_sent({"lease_token": TOKEN}), _answered({"outcome": "applied"})],
    **_CALL,
)
progress = extend_schema(
    operation_id="report_progress",
    summary="Say how far an attempt is",
    description="Only the latest is kept.",
    request=shapes.ProgressRequest,
    responses=OpenApiTypes.OBJECT,
    examples=[_sent({"lease_token": TOKEN, "percent": 40, "text": "page 4 of 10"})],
    **_CALL,
)
logs = extend_schema(
    operation_id="append_logs",
    summary="Append to the log of an attempt",
    description="1 MiB of an attempt is kept; the rest is not, and the log is marked.",
    request=shapes.LogsRequest,
    responses=answers.LogsKept,
    examples=[
        _sent({"lease_token": TOKEN, "lines": [{"level": "info", "text": "page 4 of 10"}]}),
        _answered({"accepted": 1, "truncated": False}),
    ],
    **_CALL,
)
drain = extend_schema(
    operation_id="drain_worker",
    summary="Finish and leave",
    description="The worker is given nothing more. It is `draining` while it holds leases, then `stopped`.",
    request=Empty,
    responses=answers.Worker,
    **_CALL,
)
list_workers = extend_schema(
    operation_id="list_workers",
    summary="List workers",
    description="Every start of a worker process that may serve the tenant, latest registered first.",
    tags=WORKERS,
    parameters=[WorkerQuery],
    responses=answers.WorkerPage,
)
get_worker = extend_schema(
    operation_id="get_worker", summary="Read a worker", tags=WORKERS, responses=answers.Worker
)
cancel = extend_schema(
    operation_id="cancel_run",
    summary="Cancel a run",
    description="Commits the wish, then carries it out at once where that is possible. May be repeated; a run "
    "that has ended is left as it is and says so.",
    tags=["runs"],
    request=Empty,
    responses=answers.Canceled,
    examples=[
        _answered(
            {
                "run_id": RUN_ID,
                "state": "canceled",
                "outcome": "canceled",
                "cancel_requested_at": "2026-05-04T09:30:00.123456Z",
            }
        )
    ],
)
