"""Structured logs: the fields a line may have, what is redacted, how lines are written.

Code logs with the standard library, `logging.getLogger(__name__).info("Lease renewed.", extra={...})`. Only
the names in `FIELDS` leave the process: any other `extra` is dropped, so that an input, a prompt or a result
cannot be logged by accident. Ids that hold for a while are bound once with `bound(...)` and then stand on
every line of that thread. Secrets that slip into a message or a traceback are blanked by `redact`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import Any, Literal

import structlog
from opentelemetry import trace
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.stdlib import ExtraAdder, ProcessorFormatter

# In the order of the documentation; a test compares both.
FIELDS: Mapping[str, str] = {
    "request_id": "the request, as returned in X-Request-ID",
    "tenant": "slug of the tenant",
    "workflow_id": "name of the workflow",
    "workflow_version": "number of the version",
    "run_id": "the run",
    "run_state": "state of the run after what is logged",
    "task_key": "key of the task within its run",
    "attempt": "number of the attempt, from 1",
    "dispatch_id": "the dispatch that carried the attempt",
    "worker_id": "the worker session",
    "epoch": "term of the leading coordinator",
    "operation": "what was done: claim, complete, reap, ...",
    "outcome": "how it ended: success, error, or the operation's own word",
    "count": "how many rows or items the operation changed",
    "duration_ms": "how long it took, in milliseconds",
    "error_code": "code of the error, as in an error body",
    "method": "HTTP method",
    "route": "template of the address, never the address itself",
    "status": "HTTP status",
    "trace_id": "OpenTelemetry trace, 32 hex digits",
    "span_id": "OpenTelemetry span, 16 hex digits",
}

MAX_TEXT_CHARS = 8_192
BLANK = "[redacted]"

_REDACTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+"), rf"\1 {BLANK}"),
    (re.compile(r"\bwl_[0-9a-f]+_[A-Za-z0-9_-]+"), BLANK),
    (
        re.compile(
            r"(?i)(pass(?:word|wd)?|token|secret|api[_-]?key|authorization|cookie)"
            r"(\"|')?(\s*[:=]\s*)(?!\[redacted\])(\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)"
        ),
        rf"\1\2\3{BLANK}",
    ),
    # user:password@host in a database or web address
    (re.compile(r"(?<=://)([^\s/:@]*):[^\s/@]+@"), rf"\1:{BLANK}@"),
    # PostgreSQL and pydantic repeat the refused values, which may be inputs
    (re.compile(r"(DETAIL|CONTEXT):.*"), rf"\1: {BLANK}"),
    (re.compile(r"input_value=.*"), f"input_value={BLANK}"),
)

_OWN_KEYS = frozenset({"event", "level", "logger", "timestamp", "exception", "exc_info"})


def redact(text: str) -> str:
    """`text` without bearer values, tokens, passwords (in pairs or addresses), values in database errors."""
    for pattern, replacement in _REDACTIONS:
        text = pattern.sub(replacement, text)
    return text


def bound(**fields: object) -> AbstractContextManager[None]:
    """Put these fields on every log line of this thread until the block ends; names from `FIELDS` only."""
    unknown = sorted(fields.keys() - FIELDS.keys())
    if unknown:
        raise ValueError(f"Not log fields: {', '.join(unknown)}.")
    return bound_contextvars(**{name: value for name, value in fields.items() if value is not None})


def _known_only(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    kept = {name: event[name] for name in FIELDS if event.get(name) is not None}
    own = {name: value for name, value in event.items() if name in _OWN_KEYS or name.startswith("_")}
    return {**own, **kept}


def _trace_ids(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        event["trace_id"] = trace.format_trace_id(span.trace_id)
        event["span_id"] = trace.format_span_id(span.span_id)
    return event


def _redacted(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if name.startswith("_") or isinstance(value, (int, float)):
            continue
        text = redact(str(value))
        # A traceback has lines of its own; anything else with a line break could pose as another record.
        event[name] = text if name == "exception" else text[:MAX_TEXT_CHARS].replace("\n", "\\n")
    return event


class WithTraceback(logging.Filter):
    """Lets through what carries an exception."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None


def formatter(style: Literal["text", "json"]) -> ProcessorFormatter:
    """The one formatter of the platform: one JSON object, or one readable line, per record."""
    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=False)
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)
    )
    return ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            ExtraAdder(allow=FIELDS),
            merge_contextvars,
            _trace_ids,
        ],
        processors=[
            structlog.processors.format_exc_info,
            _known_only,
            _redacted,
            ProcessorFormatter.remove_processors_meta,
            renderer,
        ],
    )


def logging_config(style: str, level: str) -> dict[str, Any]:
    """Django's LOGGING: everything to standard error, in `style` (text or json), from `level` up.

    Raises ValueError for another style or an unknown level.
    """
    if style not in ("text", "json"):
        raise ValueError(f"The log format is text or json, not {style!r}.")
    if level.upper() not in logging.getLevelNamesMapping():
        raise ValueError(f"{level!r} is not a log level.")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"traceback": {"()": "observability.logs.WithTraceback"}},
        "formatters": {"platform": {"()": "observability.logs.formatter", "style": style}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": "platform",
            }
        },
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Django brings handlers of its own; ours at the root does it all.
            "django": {"handlers": [], "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # The access log has a line for each status, and the API logs its own faults.
            "django.request": {"level": "ERROR", "filters": ["traceback"]},
            # Anybody can send any host name, as often as they like; the access log counts the 400s.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # A statement's text may hold inputs, whatever the level of the rest.
            "django.db.backends": {"level": "INFO"},
        },
    }
