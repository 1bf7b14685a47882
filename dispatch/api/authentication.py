"""The credential of a worker process: the session token that its registration was answered with.

Who the session belongs to is remembered per process, so a call costs no statement here. Whether the session
still lives is asked by each operation under its locks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from dispatch.errors import WorkerSessionInvalid
from dispatch.sessions import WorkerIdentity, find_session
from platform_site.access.authentication import bearer_value

if TYPE_CHECKING:
    from rest_framework.views import APIView

CHALLENGE = 'Bearer realm="workload-worker"'
MAX_TOKEN_CHARS = 128


class SessionAuthentication(BaseAuthentication):
    """`Authorization: Bearer <session token>`; the user is a WorkerIdentity, `request.auth` the token."""

    def authenticate(self, request: Request) -> tuple[WorkerIdentity, str] | None:
        token = bearer_value(request)
        if token is None:
            return None
        plausible = len(token) <= MAX_TOKEN_CHARS and token.isascii()
        worker = find_session(token) if plausible else None
        if worker is None:
            raise WorkerSessionInvalid(headers={"WWW-Authenticate": CHALLENGE})
        return worker, token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 the signature is the framework's
        return CHALLENGE


class IsWorker(BasePermission):
    """The worker processes themselves."""

    message = "This needs the token of a worker session."

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        return worker_of(request) is not None


def worker_of(request: Request) -> WorkerIdentity | None:
    """The worker of an authenticated request."""
    user = cast("object", request.user)
    return user if isinstance(user, WorkerIdentity) else None
