"""Which database; and the two facts every operation asks of it: its clock, and an open transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

SCHEMES = ("postgresql", "postgres")
PREPARE_THRESHOLD = 3
"""How often a session runs a statement before it prepares it."""
MIGRATING = frozenset({"migrate", "up", "demo"})
DEAD_PEER = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "11000",
}
"""A server that vanished without a word is noticed after 11 s, by a silent session and by one that waits for
an answer alike; the system's own defaults take a quarter of an hour to two. Sockets ignore all of it."""
TIMEOUTS = {
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
}
"""The outer walls of every session, which belong on the database role; transactions tighten them with SET LOCAL.
No statement of the running platform takes a tenth of that. The lock's is shorter than the statement's, so that
a wait for a lock is told as one."""


def parse_url(url: str) -> dict[str, Any]:
    """Django's database dictionary for ``postgresql://user:password@host:port/name?option=value``.

    ``?host=/folder`` names a socket folder; other options go to libpq as they are (``sslmode`` and so on).
    Raises ImproperlyConfigured, never repeating the password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"is not a database address: {error}") from error
    if parts.scheme not in SCHEMES:
        raise ImproperlyConfigured(
            "must begin with postgresql://; only PostgreSQL (15 or newer) is supported"
        )
    name = unquote(parts.path.removeprefix("/"))
    if not name or "/" in name:
        raise ImproperlyConfigured("names no database: expected postgresql://user@host/name")
    options: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(port or options.pop("port", "")),
        "OPTIONS": options,
    }


def configure(url: str, *, process_kind: str, web_threads: int) -> dict[str, Any]:
    """The ``default`` alias for one kind of process.

    Only web processes pool: their threads come and go, while a command has one connection for its life.
    The coordinator's connection carries its leadership, so it is cut within seconds when it stops answering.
    What the address itself says about dead peers stands.
    """
    database = parse_url(url)
    options = database["OPTIONS"]
    options.setdefault("application_name", f"workload-{process_kind}")
    options.setdefault("connect_timeout", "5")
    for name, value in DEAD_PEER.items():
        options.setdefault(name, value)
    options["server_side_binding"] = True
    # The hot statements are few and long: planned once a session instead of each time, they cost the server half.
    # A pooler in transaction mode that does not follow prepared statements needs prepare_threshold=none.
    options["prepare_threshold"] = _threshold(options.pop("prepare_threshold", str(PREPARE_THRESHOLD)))
    database.update(CONN_MAX_AGE=0, CONN_HEALTH_CHECKS=True, ATOMIC_REQUESTS=False)
    if process_kind == "web":
        options["pool"] = {"min_size": 1, "max_size": web_threads + 2, "timeout": 5}
    elif process_kind == "coordinator":
        database["CONN_MAX_AGE"] = None
        options["tcp_user_timeout"] = "3000"
        _set_in_session(
            options,
            idle_session_timeout="3s",
            idle_in_transaction_session_timeout="3s",
            # It runs the same few statements all day, tested under generic plans; planned anew for each set of
            # arrays, they took longer to plan than to run.
            plan_cache_mode="force_generic_plan",
        )
    elif process_kind in MIGRATING:
        # Building an index on a large table may take longer than any statement of the running platform.
        _set_in_session(options, statement_timeout="0")
    return database


def _set_in_session(options: dict[str, Any], **values: str) -> None:
    """Behind what the address sets, which so stands unless it is the same parameter."""
    given = [str(options["options"])] if options.get("options") else []
    options["options"] = " ".join([*given, *(f"-c {name}={value}" for name, value in values.items())])


def _threshold(text: str) -> int | None:
    if text == "none":
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    raise ImproperlyConfigured("prepare_threshold must be a whole number or none")


def session_timeouts(using: str = DEFAULT_DB_ALIAS) -> dict[str, int]:
    """What ``TIMEOUTS`` are in a session of this process, in milliseconds; 0 is none."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT name, setting::int FROM pg_settings WHERE name = ANY(%s) ORDER BY name", [list(TIMEOUTS)]
        )
        return dict(cursor.fetchall())


def require_transaction(using: str = DEFAULT_DB_ALIAS) -> None:
    """Raise RuntimeError unless a transaction is open: row locks outside one would vanish at once."""
    if not connections[using].in_atomic_block:
        raise RuntimeError("This step needs an open transaction; call it from an operation, inside atomic().")


def database_now(using: str = DEFAULT_DB_ALIAS) -> datetime:
    """The database's wall clock at this instant, not the transaction's start: for decisions on leases."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    if row is None:
        raise RuntimeError("The database did not tell the time.")
    now: datetime = row[0]
    return now
