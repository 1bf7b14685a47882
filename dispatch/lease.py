"""The lease: when it is valid, and the secrets that prove it. Pure.

The lease token proves ownership to us; the generation, which strictly grows per task, lets an outside
system refuse an older holder. A token is derived from the session token, so that a repeated claim can be
given the same one again although only digests are stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dispatch.states import DispatchState, WorkerState

LIVE_WORKER_STATES = frozenset({WorkerState.ACTIVE, WorkerState.DRAINING})


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A dispatch as it stands under its lock, with the state of the worker that it names."""

    state: DispatchState
    worker_id: UUID | None
    worker_state: WorkerState | None
    lease_digest: bytes | None
    lease_expires_at: datetime | None
    attempt_deadline: datetime | None


def lease_token(session_token: str, dispatch_id: UUID, generation: int) -> str:
    """The token of one lease: HMAC-SHA256 under the session token, so it can be given again but not guessed."""
    message = f"{dispatch_id}:{generation}".encode()
    digest = hmac.new(session_token.encode(), message, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def token_digest(token: str) -> bytes:
    """What is stored of a token: its SHA-256."""
    return hashlib.sha256(token.encode()).digest()


def owns(lease: HeldLease, *, worker_id: UUID, token: str) -> bool:
    """Whether the caller is the worker of this lease and knows its token. Says nothing of time."""
    if lease.worker_id != worker_id or lease.lease_digest is None:
        return False
    return hmac.compare_digest(bytes(lease.lease_digest), token_digest(token))


def valid(lease: HeldLease, *, now: datetime) -> bool:
    """Whether the lease still stands at ``now``: database time, read after its lock was taken."""
    return (
        lease.state is DispatchState.LEASED
        and lease.worker_state in LIVE_WORKER_STATES
        and lease.lease_expires_at is not None
        and lease.attempt_deadline is not None
        and now < lease.lease_expires_at
        and now < lease.attempt_deadline
    )
