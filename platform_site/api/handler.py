"""From whatever was raised to the one error body: REST framework views, and Django's own 4xx and 500."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pydantic
from django.core import exceptions as core
from django.db import InterfaceError, OperationalError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    UnreadablePostError,
)
from django.views import defaults
from rest_framework import exceptions as drf
from rest_framework.response import Response

from platform_site.api import errors
from platform_site.api.errors import Detail, DomainError
from platform_site.api.request_id import request_id_of
from workflows.kernel.errors import DefinitionInvalid, JsonInvalid, ParamsInvalid, ProblemsFound
from workflows.kernel.json_text import json_path

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1


class _Foreign(DomainError):
    """An error that only has the shape of ours: its own code and status, taken over as they are."""

    def __init__(self, source: Any) -> None:
        super().__init__(
            str(getattr(source, "message", "") or source),
            details=[_as_detail(item) for item in getattr(source, "details", ())],
            headers=getattr(source, "headers", None),
        )
        self.code = source.code  # type: ignore[misc] # one instance, one code: the class stands for many
        self.status = source.status  # type: ignore[misc] # as above


class _DefinitionInvalid(errors.InvalidRequest):
    """The workflow definition is not valid."""

    code = "definition_invalid"


class _ParamsInvalid(errors.InvalidRequest):
    """The params do not fit what the workflow declares."""

    code = "params_invalid"


def _as_detail(item: Any) -> Detail:
    return Detail(path=item.path, code=item.code, message=item.message)


def _json_invalid(exc: JsonInvalid) -> DomainError:
    place = f" (line {exc.line}, column {exc.column})" if exc.line is not None else ""
    detail = Detail(exc.path or "$", exc.code, exc.message, line=exc.line, column=exc.column)
    return errors.InvalidJson(f"The body is not valid JSON: {exc.message}{place}", details=[detail])


def _definition_invalid(exc: DefinitionInvalid) -> DomainError:
    return _DefinitionInvalid(details=map(_as_detail, exc.problems))


def _params_invalid(exc: ParamsInvalid) -> DomainError:
    return _ParamsInvalid(details=map(_as_detail, exc.problems))


def _pydantic_invalid(exc: pydantic.ValidationError) -> DomainError:
    found = exc.errors(include_url=False, include_context=False, include_input=False)
    return errors.InvalidRequest(
        details=[Detail(json_path(item["loc"]), item["type"], item["msg"]) for item in found]
    )


def _serializer_invalid(exc: drf.ValidationError) -> DomainError:
    return errors.InvalidRequest(details=_flatten(exc.detail, ()))


def _limited(exc: drf.Throttled) -> DomainError:
    wait: float | None = getattr(exc, "wait", None)
    return errors.RateLimited(headers={"Retry-After": str(max(RETRY_AFTER_SECONDS, round(wait or 0)))})


def _unauthorized(exc: drf.APIException) -> DomainError:
    challenge = getattr(exc, "auth_header", None)
    headers = {"WWW-Authenticate": challenge} if challenge else None
    message = str(exc.detail) if isinstance(exc, drf.AuthenticationFailed) else None
    return errors.Unauthorized(message, headers=headers)


def _forbidden(exc: drf.PermissionDenied) -> DomainError:
    message = str(exc.detail)
    return errors.Forbidden(None if message == drf.PermissionDenied.default_detail else message)


def _of_status(exc: drf.APIException) -> DomainError:
    """Any other error of the framework, by its status; 400 where we have no class for it."""
    for known in (errors.Forbidden, errors.NotFound, errors.Conflict, errors.Unavailable):
        if known.status == exc.status_code:
            return known()
    return errors.InternalError() if exc.status_code >= 500 else errors.InvalidRequest()


def _unavailable(_exc: BaseException) -> DomainError:
    return errors.Unavailable(retry_after=RETRY_AFTER_SECONDS)


# First match wins: narrower classes stand before their bases.
_ANSWERS: tuple[
    tuple[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], DomainError]], ...
] = (
    (DomainError, lambda exc: exc),
    (JsonInvalid, _json_invalid),
    (DefinitionInvalid, _definition_invalid),
    (ParamsInvalid, _params_invalid),
    (ProblemsFound, lambda exc: errors.InvalidRequest(details=map(_as_detail, exc.problems))),
    (pydantic.ValidationError, _pydantic_invalid),
    (drf.ValidationError, _serializer_invalid),
    (drf.ParseError, lambda _exc: errors.InvalidJson()),
    ((drf.NotAuthenticated, drf.AuthenticationFailed), _unauthorized),
    (drf.PermissionDenied, _forbidden),
    (drf.MethodNotAllowed, lambda exc: errors.MethodNotAllowed(f"This address does not know {exc.args[0]}.")),
    (drf.NotAcceptable, lambda _exc: errors.NotAcceptable()),
    (drf.UnsupportedMediaType, lambda _exc: errors.UnsupportedMediaType()),
    (drf.Throttled, _limited),
    (drf.APIException, _of_status),
    (Http404, lambda _exc: errors.NotFound()),
    (core.PermissionDenied, lambda _exc: errors.Forbidden()),
    (core.RequestDataTooBig, lambda _exc: errors.BodyTooLarge()),
    ((core.SuspiciousOperation, core.BadRequest), lambda _exc: errors.InvalidRequest()),
    (UnreadablePostError, lambda _exc: errors.InvalidRequest("The body ended early.")),
    ((OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError), _unavailable),
)


def describe(exc: BaseException) -> DomainError:
    """The answer to an exception. What nothing here knows is a fault of ours: a generic 500."""
    for known, answer in _ANSWERS:
        if isinstance(exc, known):
            return answer(exc)
    if isinstance(getattr(exc, "code", None), str) and isinstance(getattr(exc, "status", None), int):
        return _Foreign(exc)
    return errors.InternalError()


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """REST framework's hook: every exception of a view becomes the one body, and a 5xx is logged."""
    error = describe(exc)
    _report(error, exc)
    request = context.get("request")
    body = errors.envelope(error, request_id=request_id_of(getattr(request, "_request", request)))
    response = Response(body, status=error.status, headers=dict(error.headers))
    response.error_code = error.code  # type: ignore[attr-defined] # read by the access log
    return response


def json_response(error: DomainError, request: HttpRequest) -> HttpResponse:
    """The one body outside the REST framework."""
    body = errors.envelope(error, request_id=request_id_of(request))
    response = JsonResponse(body, status=error.status, headers=dict(error.headers))
    response.error_code = error.code  # type: ignore[attr-defined] # read by the access log
    return response


def is_api(request: HttpRequest) -> bool:
    """Whether this address speaks JSON to programs."""
    return request.path.startswith(("/api/", "/health/")) or request.path in ("/api", "/metrics")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """`handler400` of the site."""
    if is_api(request):
        return json_response(describe(exception), request)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """`handler403` of the site."""
    if is_api(request):
        return json_response(describe(exception), request)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """`handler404` of the site."""
    if is_api(request):
        return json_response(errors.NotFound(), request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """`handler500` of the site: also where a lost database on a page or in a middleware becomes a 503.

    Django logs the traceback. It hands over no exception, but calls this while it is being handled.
    """
    exc = sys.exception()
    error = describe(exc) if exc is not None else errors.InternalError()
    if error.status < 500:
        error = errors.InternalError()
    if is_api(request):
        return json_response(error, request)
    response = defaults.server_error(request)
    response.status_code = error.status
    for name, value in error.headers.items():
        response[name] = value
    return response


def _report(error: DomainError, exc: Exception) -> None:
    """A 500 with its traceback; a 503 as one line, since an outage makes many."""
    if error.status == 503:
        logger.warning(
            "Answered 503: %s", type(exc.__cause__ or exc).__name__, extra={"error_code": error.code}
        )
    elif error.status >= 500:
        logger.error("A view failed.", exc_info=exc, extra={"error_code": error.code})


def _flatten(found: Any, parts: tuple[str | int, ...]) -> Iterator[Detail]:
    """The serializers' nested errors as details, depth first."""
    if isinstance(found, Mapping):
        for name, below in found.items():
            step = () if name == "non_field_errors" else (name,)
            yield from _flatten(below, (*parts, *step))
    elif isinstance(found, list):
        for position, below in enumerate(found):
            nested = isinstance(below, Mapping)
            yield from _flatten(below, (*parts, position) if nested else parts)
    else:
        yield Detail(json_path(parts), getattr(found, "code", "invalid"), str(found))
