"""One tree of errors, one code for each, one body for all.

    DomainError                  what an operation of an app above raises: subclass it, set code and status
      - ApiError                 what the HTTP furniture itself raises
          . InvalidRequest       400 invalid_request
              . InvalidJson      400 invalid_json
              . InvalidCursor    400 invalid_cursor
          . Unauthorized         401 unauthorized
          . Forbidden            403 forbidden
          . NotFound             404 not_found
          . MethodNotAllowed     405 method_not_allowed
          . NotAcceptable        406 not_acceptable
          . Conflict             409 conflict
              . IdempotencyConflict  409 idempotency_conflict
          . BodyTooLarge         413 body_too_large
          . UnsupportedMediaType 415 unsupported_media_type
          . RateLimited          429 rate_limited
          . InternalError        500 internal_error
          . Unavailable          503 unavailable

The body is `{"error": {"code", "message", "details": [{"path", "code", "message"}], "request_id"}}`. The
docstring of a class is its default message, so the tree reads like the documentation. Clients switch on the
code; the message is for people. Neither message nor details may hold a secret or a value that the request
carried.
`platform_site.api.handler` turns whatever was raised into this body.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

MAX_DETAILS = 200


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that is wrong, and where: `path` is a JSON path such as `$.tasks[3].key`.

    `line` and `column` (from 1) are given where the text itself is at fault.
    """

    path: str
    code: str
    message: str
    line: int | None = None
    column: int | None = None

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"path": self.path, "code": self.code, "message": self.message}
        if self.line is not None:
            body |= {"line": self.line, "column": self.column}
        return body


class DomainError(Exception):
    """The request could not be answered as asked."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    base_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        message: str | None = None,
        *,
        details: Iterable[Detail] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message or self.default_message()
        self.details = tuple(details)
        self.headers: Mapping[str, str] = {**self.base_headers, **(headers or {})}
        super().__init__(self.message)

    @classmethod
    def default_message(cls) -> str:
        """The first paragraph of the class's docstring, on one line."""
        return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


class ApiError(DomainError):
    """The request could not be answered."""


class InvalidRequest(ApiError):
    """The request is not valid."""

    code = "invalid_request"
    status = 400


class InvalidJson(InvalidRequest):
    """The body is not valid JSON."""

    code = "invalid_json"


class InvalidCursor(InvalidRequest):
    """The cursor is not one of this list with these filters. Start again without it."""

    code = "invalid_cursor"


class Unauthorized(ApiError):
    """A valid token is needed: Authorization: Bearer <token>."""

    code = "unauthorized"
    status = 401
    base_headers = {"WWW-Authenticate": 'Bearer realm="workload"'}


class Forbidden(ApiError):
    """This credential may not do that."""

    code = "forbidden"
    status = 403


class NotFound(ApiError):
    """There is nothing here."""

    code = "not_found"
    status = 404


class MethodNotAllowed(ApiError):
    """This address does not know that method."""

    code = "method_not_allowed"
    status = 405


class NotAcceptable(ApiError):
    """The answer is JSON (application/json); the Accept header refuses it."""

    code = "not_acceptable"
    status = 406


class Conflict(ApiError):
    """The state of the resource does not allow that."""

    code = "conflict"
    status = 409


class IdempotencyConflict(Conflict):
    """The Idempotency-Key was used before with another request."""

    code = "idempotency_conflict"


class BodyTooLarge(ApiError):
    """The body is larger than this address accepts."""

    code = "body_too_large"
    status = 413


class UnsupportedMediaType(ApiError):
    """The body must be JSON, sent as Content-Type: application/json."""

    code = "unsupported_media_type"
    status = 415


class RateLimited(ApiError):
    """Too many requests. Try again later."""

    code = "rate_limited"
    status = 429


class InternalError(ApiError):
    """Something went wrong here. The request id names it in the log."""

    code = "internal_error"
    status = 500


class Unavailable(ApiError):
    """The service cannot answer for the moment. Try again shortly."""

    code = "unavailable"
    status = 503

    def __init__(self, message: str | None = None, *, retry_after: int = 1) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)})


def envelope(error: DomainError, *, request_id: str) -> dict[str, Any]:
    """The one error body; at most 200 details, then one that says how many were left out."""
    details = [detail.as_json() for detail in error.details[:MAX_DETAILS]]
    left_out = len(error.details) - len(details)
    if left_out > 0:
        details.append(Detail("$", "more", f"{left_out} more problems are not listed.").as_json())
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "details": details,
            "request_id": request_id,
        }
    }
