"""A name for each request: in its response, in its error body, on its log lines."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9\-_.]{1,64}")


def new_request_id() -> str:
    return f"req_{secrets.token_hex(8)}"


def request_id_of(request: HttpRequest | None) -> str:
    """The id the middleware gave; a fresh one where no middleware ran (a view called by a test)."""
    return getattr(request, "request_id", None) or new_request_id()


class RequestIdMiddleware:
    """Takes the client's X-Request-ID if it is 1..64 of letters, digits, `-_.`; else makes `req_` + 16 hex.

    Stands first, so that it also empties the log context: threads serve one request after another, and what
    one bound must not show on the lines of the next.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        asked = request.headers.get(HEADER, "")
        request_id = asked if _ACCEPTED.fullmatch(asked) else new_request_id()
        request.request_id = request_id  # type: ignore[attr-defined] # Django requests take attributes
        around = get_contextvars()
        clear_contextvars()
        bind_contextvars(request_id=request_id)
        try:
            response = self.get_response(request)
        finally:
            clear_contextvars()
            bind_contextvars(**around)
        response[HEADER] = request_id
        return response
