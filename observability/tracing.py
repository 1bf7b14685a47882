"""OpenTelemetry, on only when its standard environment variables ask for it.

`OTEL_TRACES_EXPORTER` (`otlp` or `console`; `none` is off) or `OTEL_EXPORTER_OTLP_ENDPOINT` turns it on;
`OTEL_SDK_DISABLED=true` keeps it off. Sampling, batching and the service name follow the standard variables
too. While it is off every function here costs next to nothing and does nothing. A failing exporter drops
spans on its own thread; nothing here raises into the caller.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Literal

from opentelemetry import propagate, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

logger = logging.getLogger(__name__)

Attribute = str | int | float | bool
Library = Literal["django", "psycopg", "requests"]

_W3C = TraceContextTextMapPropagator()
_configured = threading.Event()


def requested(environment: Mapping[str, str] | None = None) -> list[str]:
    """The exporters asked for: any of `otlp`, `console`; an empty list is off."""
    env = os.environ if environment is None else environment
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    named = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named:
        return [word for part in named.split(",") if (word := part.strip()) and word != "none"]
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return ["otlp"] if any(env.get(name, "").strip() for name in endpoints) else []


def configure(
    service_name: str, *, instrument: Collection[Library] = ("django", "psycopg", "requests")
) -> bool:
    """Turn tracing on if it is asked for; True if it is on now. Call once per process, after any fork.

    `instrument`: the libraries of this process that get spans of their own. `OTEL_SERVICE_NAME` wins over
    `service_name`. A fault here is logged and leaves tracing off.
    """
    if _configured.is_set():
        return True
    exporters = requested()
    if not exporters:
        return False
    try:
        _install(service_name, exporters)
        _instrument(instrument)
    except Exception:  # an instrument that cannot start must not stop the platform
        logger.warning("Tracing could not be set up and stays off.", exc_info=True)
        return False
    _configured.set()
    return True


def _install(service_name: str, exporters: list[str]) -> None:
    # Heavy, and needed only where tracing is on.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    provider = TracerProvider(
        resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or service_name})
    )
    for name in exporters:
        exporter: SpanExporter
        if name == "console":
            exporter = ConsoleSpanExporter()
        elif name == "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        else:
            raise ValueError(f"OTEL_TRACES_EXPORTER: {name!r} is neither otlp, console nor none.")
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    propagate.set_global_textmap(_W3C)  # no baggage: nothing of a caller's travels on


def _instrument(libraries: Collection[Library]) -> None:
    # Imported one by one: a worker without a database needs no database driver to be traced.
    if "django" in libraries:
        from opentelemetry.instrumentation.django import DjangoInstrumentor

        # Behind the request id and the probes, which are not traced; before the access log, which names the span.
        os.environ.setdefault("OTEL_PYTHON_DJANGO_MIDDLEWARE_POSITION", "2")
        DjangoInstrumentor().instrument()
    if "psycopg" in libraries:
        from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor

        PsycopgInstrumentor().instrument()
    if "requests" in libraries:
        from opentelemetry.instrumentation.requests import RequestsInstrumentor

        RequestsInstrumentor().instrument()


def current_traceparent() -> str | None:
    """The W3C `traceparent` of the span at hand, to store with a run or a dispatch; None without one."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get("traceparent")


def span(
    name: str,
    attributes: Mapping[str, Attribute | None] | None = None,
    *,
    parent: str | None = None,
) -> AbstractContextManager[trace.Span]:
    """A span around the block; `parent` is a stored `traceparent`, a malformed one begins a new trace.

    An exception passes through and marks the span as failed with its type alone: messages may hold inputs.
    What the instrument itself raises is logged and goes no further.
    """
    if not _configured.is_set():
        return nullcontext(trace.INVALID_SPAN)
    return _recorded(name, {key: it for key, it in (attributes or {}).items() if it is not None}, parent)


@contextmanager
def _recorded(name: str, attributes: Mapping[str, Attribute], parent: str | None) -> Iterator[trace.Span]:
    opened = ExitStack()
    current: trace.Span = trace.INVALID_SPAN
    try:
        context = _W3C.extract({"traceparent": parent}) if parent else None
        current = opened.enter_context(
            trace.get_tracer("workload").start_as_current_span(
                name,
                context=context,
                attributes=attributes,
                record_exception=False,
                set_status_on_exception=False,
            )
        )
    except Exception:  # an instrument steers nothing
        logger.warning("A span could not be opened.", exc_info=True)
    try:
        yield current
    except BaseException as failed:
        current.set_status(trace.StatusCode.ERROR, type(failed).__name__)
        raise
    finally:
        try:
            opened.close()
        except Exception:  # as above
            logger.warning("A span could not be closed.", exc_info=True)
