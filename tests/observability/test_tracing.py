from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connections
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from observability import tracing

ROOT = Path(__file__).parents[2]
PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


@pytest.mark.parametrize(
    ("environment", "exporters"),
    [
        ({}, []),
        ({"OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": " "}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["otlp"]),
        ({"OTEL_TRACES_EXPORTER": "Console, otlp"}, ["console", "otlp"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, ["otlp"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, []),
    ],
)
def test_what_turns_it_on(environment: dict[str, str], exporters: list[str]) -> None:
    assert tracing.requested(environment) == exporters


def test_off_is_the_default_and_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    assert tracing.configure("workload-test") is False
    with tracing.span("claim", {"outcome": "success"}) as span:
        assert not span.is_recording()
        assert tracing.current_traceparent() is None


def test_an_exporter_that_does_not_exist_leaves_it_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
    assert tracing.configure("workload-test") is False
    assert "stays off" in caplog.text


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_a_span_continues_a_stored_parent(spans: InMemorySpanExporter) -> None:
    with tracing.span("run", {"count": 3, "outcome": None}, parent=PARENT):
        inside = tracing.current_traceparent()
    assert inside is not None
    assert inside.split("-")[1] == "a" * 32
    (span,) = spans.get_finished_spans()
    assert span.parent is not None
    assert span.parent.span_id == int("b" * 16, 16)
    assert dict(span.attributes or {}) == {"count": 3}


@pytest.mark.parametrize("parent", ["", "nonsense", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", None])
def test_a_malformed_parent_begins_a_new_trace(spans: InMemorySpanExporter, parent: str | None) -> None:
    with tracing.span("run", parent=parent):
        pass
    (span,) = spans.get_finished_spans()
    assert span.parent is None


def test_an_exception_passes_and_leaves_its_type_alone(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="hunter2"), tracing.span("run"):
        raise ValueError("hunter2")
    (span,) = spans.get_finished_spans()
    assert span.status.description == "ValueError"
    assert "hunter2" not in span.to_json()


SCRIPT = """
import django; django.setup()
from observability import tracing
assert tracing.configure("workload-test") and tracing.configure("workload-test")
from django.db import connection
from django.test import Client
Client(SERVER_NAME="localhost").get("/api/schema", headers={"traceparent": "%s"})
connection.ensure_connection()
with connection.cursor() as cursor:
    cursor.execute("SELECT %%s::text", ["hunter2"])
    print("ANSWER", cursor.fetchone())
from opentelemetry import trace
trace.get_tracer_provider().shutdown()
"""


def test_a_process_that_is_asked_to_traces_requests_and_statements(db: None) -> None:
    settings = connections["default"].settings_dict
    place = f"host={settings['HOST']}&port={settings['PORT'] or 5432}"
    url = f"postgresql://{settings['USER']}@/{settings['NAME']}?{place}"
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "platform_site.settings",
        "WORKLOAD_PROCESS_KIND": "web",
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_SERVICE_NAME": "named-by-me",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % PARENT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "ANSWER ('hunter2',)" in done.stdout
    exported = re.sub(r"ANSWER .*\n", "", done.stdout)
    assert "hunter2" not in exported, "a statement is traced without its parameters"
    spans = list(_json_objects(exported))
    assert any(span["context"]["trace_id"] == "0x" + "a" * 32 for span in spans), "the caller's trace goes on"
    assert any("SELECT %s::text" in str(span["attributes"]) for span in spans)
    assert {span["resource"]["attributes"]["service.name"] for span in spans} == {"named-by-me"}


def _json_objects(text: str) -> list[dict[str, object]]:
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found
