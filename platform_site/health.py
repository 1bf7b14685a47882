"""Probes for whoever keeps the process running. No credential, no session, no pool, any host name.

- `/health/live`: this process answers. It asks nothing else, so that a lost database restarts no web process.
- `/health/ready`: the database answers within a bound and has every migration of this code. Else 503.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

CONNECT_SECONDS = 2
STATEMENT_MS = 2_000
RETRY_AFTER_SECONDS = 1

_APPLIED = "SELECT app, name FROM django_migrations"


@never_cache
@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "live"})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    checks = check_database()
    if all(found == "ok" for found in checks.values()):
        return JsonResponse({"status": "ready", "checks": checks})
    response = JsonResponse({"status": "not_ready", "checks": checks}, status=503)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


class HealthMiddleware:
    """Answers the probes before anything else looks at them.

    A prober names the address it was given as the host, which no list of allowed hosts can know; and
    sessions, redirects or traces have no business with a probe.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path == "/health/live":
            return live(request)
        if request.path == "/health/ready":
            return ready(request)
        return self.get_response(request)


def check_database() -> dict[str, str]:
    """`database` and `migrations`, each `ok` or what is wrong with it, in a few words and without addresses.

    On a connection of its own: a busy pool is load, which more probes would only add to.
    """
    try:
        applied = _applied_migrations()
    except psycopg.errors.UndefinedTable:
        return {"database": "ok", "migrations": "none applied"}
    except psycopg.Error:
        return {"database": "unreachable", "migrations": "unknown"}
    missing = _expected_migrations() - applied
    return {"database": "ok", "migrations": f"{len(missing)} not applied" if missing else "ok"}


def _applied_migrations() -> set[tuple[str, str]]:
    params: dict[str, Any] = connections["default"].get_connection_params()
    options = f"{params.pop('options', '')} -c statement_timeout={STATEMENT_MS}".strip()
    for not_libpq in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(not_libpq, None)
    params |= {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": STATEMENT_MS, "options": options}
    with psycopg.connect(**params, autocommit=True) as connection:
        return {(row[0], row[1]) for row in connection.execute(_APPLIED)}


@lru_cache(maxsize=1)
def _expected_migrations() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return frozenset((app, name) for app, name in loader.disk_migrations)
