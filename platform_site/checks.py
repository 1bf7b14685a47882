"""System checks of the site: what single settings cannot know of one another. Ids are stable.

Wrong values refuse the start already (`platform_site.configuration`); these run with `manage.py check`, and
those marked deploy with `check --deploy`, and say what to do.

    workload.E001  the lease does not outlast two heartbeats plus a second
    workload.E002  fewer pooled database connections than threads that use them
    workload.E003  any host is answered although debug is off
    workload.W001  debug is on while the server listens beyond this machine
    workload.W002  the secret key is short or predictable                                     (deploy)
    workload.W003  the coordinator's database address looks like a pooler                     (deploy)
    workload.W004  the one-machine database serves a server that listens beyond this machine  (deploy)
    workload.W005  metrics are public while the server listens beyond this machine            (deploy)
    workload.W006  plain http while the server listens beyond this machine                    (deploy)
    workload.W007  sessions have no statement, lock or idle timeout                           (with --database)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DEFAULT_DB_ALIAS

from platform_site import database
from platform_site.configuration import PlatformSettings, is_loopback

POOLER_PORTS = frozenset({"6432", "6543"})
MIN_KEY_CHARS = 40


def register_checks() -> None:
    """Called once, when the site's app is ready."""
    register(check_lease, Tags.compatibility)
    register(check_pool, Tags.database)
    register(check_session_timeouts, Tags.database)
    register(check_hosts, Tags.security)
    register(check_secret_key, Tags.security, deploy=True)
    register(check_coordinator_database, Tags.database, deploy=True)
    register(check_exposure, Tags.security, deploy=True)


def check_lease(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ARG001
    workload: PlatformSettings = settings.WORKLOAD
    least = 2 * workload.heartbeat_interval_ms + 1_000
    if workload.lease_duration_ms > least:
        return []
    return [
        Error(
            f"A lease of {workload.lease_duration_ms} ms ends with one lost heartbeat.",
            hint=f"Set WORKLOAD_LEASE_DURATION_MS above {least}, or shorten WORKLOAD_HEARTBEAT_INTERVAL_MS.",
            id="workload.E001",
        )
    ]


def check_pool(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ARG001
    pool = settings.DATABASES["default"].get("OPTIONS", {}).get("pool")
    if not isinstance(pool, dict):
        return []
    needed = settings.WORKLOAD.web_threads + 2
    size = pool.get("max_size") or pool.get("min_size", 4)
    if size >= needed:
        return []
    return [
        Error(
            f"{size} pooled connections for {settings.WORKLOAD.web_threads} threads: requests would wait.",
            hint=f"Let the pool grow to {needed}: the threads, the listener and a probe.",
            id="workload.E002",
        )
    ]


def check_hosts(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ARG001
    found: list[CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS and not settings.DEBUG:
        found.append(
            Error(
                "Requests for any host name are answered.",
                hint="Name the hosts in WORKLOAD_ALLOWED_HOSTS.",
                id="workload.E003",
            )
        )
    if settings.DEBUG and not is_loopback(settings.WORKLOAD.bind):
        found.append(
            checks.Warning(
                f"Debug pages show settings and source, and the server listens on {settings.WORKLOAD.bind}.",
                hint="Unset WORKLOAD_DEBUG, or bind to 127.0.0.1.",
                id="workload.W001",
            )
        )
    return found


def check_secret_key(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ARG001
    key = str(settings.SECRET_KEY)
    if len(key) >= MIN_KEY_CHARS and len(set(key)) >= 10:
        return []
    return [
        checks.Warning(
            "The secret key is short or repetitive: sessions could be forged.",
            hint=f"Set WORKLOAD_SECRET_KEY, or its _FILE, to {MIN_KEY_CHARS} random characters.",
            id="workload.W002",
        )
    ]


def check_coordinator_database(
    app_configs: Sequence[AppConfig] | None,  # noqa: ARG001 the signature is Django's
    **_: Any,
) -> list[CheckMessage]:
    if settings.WORKLOAD.process_kind != "coordinator":
        return []
    if str(settings.DATABASES["default"].get("PORT")) not in POOLER_PORTS:
        return []
    return [
        checks.Warning(
            "The coordinator seems to reach PostgreSQL through a pooler; leadership needs its own session.",
            hint="Set COORDINATOR_DATABASE_URL to the server itself.",
            id="workload.W003",
        )
    ]


def check_session_timeouts(
    app_configs: Sequence[AppConfig] | None,  # noqa: ARG001 the signature is Django's
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[CheckMessage]:
    """Asks the database, so only where it was named: `check --database default`, and the coordinator's start."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    asked = dict(database.TIMEOUTS)
    if settings.WORKLOAD.process_kind in database.MIGRATING:
        del asked["statement_timeout"]  # switched off by this process itself
    found = database.session_timeouts()
    missing = [name for name in asked if not found[name]]
    if not missing:
        return []
    role = settings.DATABASES[DEFAULT_DB_ALIAS]["USER"] or "the role in DATABASE_URL"
    statements = " ".join(f"ALTER ROLE \"{role}\" SET {name} = '{asked[name]}';" for name in missing)
    return [
        checks.Warning(
            f"A session of this database may hang for ever: {', '.join(f'{name} is 0' for name in missing)}.",
            hint=f"{statements} Sessions that are open keep what they have.",
            id="workload.W007",
        )
    ]


def check_exposure(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ARG001
    """What is fine on one machine and not on a network."""
    workload: PlatformSettings = settings.WORKLOAD
    if is_loopback(workload.bind):
        return []
    found: list[CheckMessage] = []
    if workload.embedded_database:
        found.append(
            checks.Warning(
                "The one-machine database has no backups and no standby.",
                hint="Set DATABASE_URL to a PostgreSQL server that you back up.",
                id="workload.W004",
            )
        )
    if workload.metrics_public:
        found.append(
            checks.Warning(
                "/metrics answers anybody who can reach the server.",
                hint="Set WORKLOAD_METRICS_PUBLIC=0 and give the scraper a viewer token.",
                id="workload.W005",
            )
        )
    if not settings.SECURE_SSL_REDIRECT:
        found.append(
            checks.Warning(
                "Tokens and cookies travel over plain http.",
                hint="Put a proxy that ends TLS in front and set WORKLOAD_HTTPS=1.",
                id="workload.W006",
            )
        )
    return found
