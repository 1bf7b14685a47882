"""What worker processes send, version 1. Durations are milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from dispatch.operations.results import MAX_ERROR_CODE_BYTES, MAX_ERROR_MESSAGE_BYTES, MAX_OUTPUT_BYTES
from platform_site.api.shapes import AnyText, Shape, Uuid
from workflows.kernel.format import EXECUTOR_PATTERN, MAX_LABELS, LabelName, LabelValue

MAX_SLOTS = 1024
MAX_LINES = 1000
MAX_PROGRESS_BYTES = 256
MAX_WAIT_MS = 60_000
"""What may be asked for; the control plane waits less where its own setting says so."""

Slots = Annotated[int, Field(ge=1, le=MAX_SLOTS)]
ClaimNumber = Annotated[int, Field(ge=1, le=2**62)]
LeaseToken = Annotated[str, Field(min_length=1, max_length=128)]

_RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": {"enum": ["success", "temporary_failure", "permanent_failure"]},
        "output": {"description": f"Any JSON value, at most {MAX_OUTPUT_BYTES:,} bytes; of a success."},
        "error_code": {"type": ["string", "null"], "description": f"{MAX_ERROR_CODE_BYTES} bytes are kept."},
        "error_message": {
            "type": ["string", "null"],
            "description": f"{MAX_ERROR_MESSAGE_BYTES:,} bytes are kept.",
        },
    },
    "description": "Never refused under a valid lease: what cannot be stored is settled as a permanent "
    "failure, result_too_large or result_invalid, that says why.",
    "examples": [{"kind": "success", "output": {"rows": 3}}],
}

Result = Annotated[Any, WithJsonSchema(_RESULT_SCHEMA)]


class RegisterRequest(Shape):
    """A worker process at its start."""

    display_name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"\S")]
    """What people see; need not be unique."""
    protocol_version: int
    """1."""
    executor_kinds: Annotated[
        list[Annotated[str, Field(pattern=EXECUTOR_PATTERN)]], Field(min_length=1, max_length=16)
    ]
    """Kinds of tasks that it runs; it is given no others."""
    max_concurrency: Slots
    """Leases that it can hold at one time."""
    labels: Annotated[dict[LabelName, LabelValue], Field(max_length=MAX_LABELS)] = Field(default_factory=dict)
    """What tasks may require."""
    drills: bool = False
    """Whether mock tasks may hang and crash it on purpose."""


class ClaimRequest(Shape):
    """Ask for work."""

    slots: Slots
    """Leases wanted, at most."""
    wait_ms: Annotated[int, Field(ge=0, le=MAX_WAIT_MS)] = 0
    """How long to wait for the first lease; the control plane may wait less."""
    claim_no: ClaimNumber
    """Counts the calls of this session that may lease, from 1; the same again when the call is sent again."""


class NamedLeaseShape(Shape):
    """A lease that the worker holds."""

    dispatch_id: Uuid
    lease_token: LeaseToken


class HeartbeatRequest(Shape):
    """The worker lives and holds these."""

    leases: Annotated[list[NamedLeaseShape], Field(max_length=MAX_SLOTS)]
    answered_through: Annotated[int, Field(ge=0, le=2**62)]
    """The highest n such that every leasing call up to n was answered or given up."""


class CompleteRequest(Shape):
    """One result."""

    lease_token: LeaseToken
    result: Result


class CompletionItem(Shape):
    """One result of many."""

    dispatch_id: Uuid
    lease_token: LeaseToken
    result: Result


class RefillRequest(Shape):
    """Work to be leased in the same call."""

    slots: Slots
    claim_no: ClaimNumber


class CompletionsRequest(Shape):
    """Many results, and optionally a claim."""

    items: Annotated[list[CompletionItem], Field(min_length=1, max_length=MAX_SLOTS)]
    refill: RefillRequest | None = None


class ReleaseRequest(Shape):
    """Give a lease back unstarted."""

    lease_token: LeaseToken


class ProgressRequest(Shape):
    """How far an attempt is; only the latest is kept."""

    lease_token: LeaseToken
    percent: Annotated[float, Field(ge=0, le=100)] | None = None
    """Kept without its fraction."""
    text: AnyText = ""
    """At most 256 bytes are kept; what cannot be stored is replaced."""


class LogLineShape(Shape):
    """One line."""

    level: Literal["debug", "info", "warning", "error"]
    text: AnyText
    """At most 8 KiB are kept; what cannot be stored is replaced."""


class LogsRequest(Shape):
    """Lines that an attempt logged, in order."""

    lease_token: LeaseToken
    lines: Annotated[list[LogLineShape], Field(min_length=1, max_length=MAX_LINES)]
