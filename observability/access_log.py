"""One log line for each request: method, route template, status, duration, error code. Never the address."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

logger = logging.getLogger("observability.access")

# Many a second, and of no interest while they succeed: scrapes, and the calls of workers.
_QUIET_ROUTES = ("metrics", "static/")
_WORKER_ROUTES = "api/v1/workers/"


class AccessLogMiddleware:
    """Stands right behind the request id, so that the line has it and the duration has everything else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.monotonic()
        response = self.get_response(request)
        route = request.resolver_match.route if request.resolver_match else "unmatched"
        logger.log(
            _level(request.method or "", route, response.status_code),
            "Request answered.",
            extra={
                "method": request.method,
                "route": f"/{route.lstrip('^')}" if request.resolver_match else route,
                "status": response.status_code,
                "duration_ms": round((time.monotonic() - began) * 1000, 1),
                "error_code": getattr(response, "error_code", None),
            },
        )
        return response


def _level(method: str, route: str, status: int) -> int:
    if status >= 500:
        return logging.WARNING
    if status < 400 and (
        route.startswith(_QUIET_ROUTES) or (method == "POST" and route.startswith(_WORKER_ROUTES))
    ):
        return logging.DEBUG
    return logging.INFO
