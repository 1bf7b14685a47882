from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dispatch.models import Dispatch
from observability import tracing
from tests.support.http import WorkerApi, api_as
from tests.support.platform import a_task, published, queue_all
from tests.support.programs import database_url
from tests.workers.test_reports import SilentPlane
from workers import outcome
from workers.account import hold
from workers.client import _leases
from workers.executors.base import ExecutionControl, ExecutionRequest
from workers.loop import Execution
from workers.outcome import Outcome
from workers.process import monotonic
from workers.reports import Reports

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
    on = threading.Event()
    on.set()
    monkeypatch.setattr(tracing, "_configured", on)
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


def traced_script(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run these lines against the test database with the exporter that prints."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "platform_site.settings",
            "OTEL_TRACES_EXPORTER": "console",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


class Broken:
    """An instrument that fails at every turn."""

    def start_as_current_span(self, *_: object, **__: object) -> object:
        raise OSError("no instrument")


def test_an_instrument_that_fails_steers_nothing(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trace, "get_tracer", lambda _name: Broken())
    with tracing.span("run") as span:
        assert not span.is_recording()
    with pytest.raises(ValueError, match="the block's own"), tracing.span("run"):
        raise ValueError("the block's own")
    assert caplog.text.count("could not be opened") == 2


class Closing(SimpleSpanProcessor):
    def on_end(self, span: object) -> None:
        raise OSError("no instrument")


def test_nor_one_that_fails_at_the_end(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Closing(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with tracing.span("run"):
        pass
    assert "could not be closed" in caplog.text
    assert tracing.current_traceparent() is None, "the context is left all the same"


# -- from the request to the execution -------------------------------------------------------------


class Taking:
    """An executor that notes under which trace it runs."""

    kind = "mock"

    def __init__(self) -> None:
        self.under: str | None = None

    def execute(self, _request: ExecutionRequest, _control: ExecutionControl) -> Outcome:
        self.under = tracing.current_traceparent()
        return outcome.success(None)


@pytest.mark.django_db
def test_request_run_dispatch_lease_and_execution_share_one_trace(spans: InMemorySpanExporter) -> None:
    worker = WorkerApi()
    published("flow", [a_task("one")])
    with tracing.span("the caller"):
        asked = tracing.current_traceparent()
        run_id = api_as("operator").post("workflows/flow/runs", {}).json["run_id"]
    assert asked is not None
    assert queue_all() == 1
    assert Dispatch.objects.get(run=run_id).traceparent == asked
    (taken,) = _leases(worker.claim().json)
    assert taken.request.traceparent == asked
    executor = Taking()
    held = hold(taken, since=monotonic(), margin=1.0)
    Execution({"mock": executor}, Reports(SilentPlane(), clock=monotonic, stopping=threading.Event())).run(
        held
    )
    caller, execution = spans.get_finished_spans()
    assert execution.context.trace_id == caller.context.trace_id
    assert execution.parent is not None
    assert execution.parent.span_id == caller.context.span_id
    assert dict(execution.attributes or {}) == {
        "run_id": run_id,
        "task_key": "one",
        "attempt": 1,
        "dispatch_id": taken.dispatch_id,
        "workflow_id": "flow",
        "action": "noop",
        "outcome": "success",
    }
    assert executor.under is not None
    assert executor.under.split("-")[1] == asked.split("-")[1]


@pytest.mark.django_db
def test_without_tracing_a_run_has_no_trace() -> None:
    worker = WorkerApi()
    published("flow", [a_task("one")])
    api_as("operator").post("workflows/flow/runs", {})
    queue_all()
    (lease,) = worker.leases()
    assert "traceparent" not in lease


STARTS = {
    "worker": """
from workers.__main__ import run_worker
from workers.options import WorkerOptions
import workers.runtime
workers.runtime.REGISTER_SECONDS = 0.0
run_worker(WorkerOptions(server_url="http://127.0.0.1:9", enrolment_token="t", name="w", kinds=("mock",)))
""",
    "coordinator": """
import django; django.setup()
from django.core.management import call_command
from dispatch.coordinator import Coordinator
Coordinator.run = lambda self, stop: None
call_command("coordinator")
""",
}


@pytest.mark.parametrize("process", STARTS)
def test_coordinators_and_workers_are_traced_under_their_names(process: str, db: None) -> None:
    ending = "from opentelemetry import trace; trace.get_tracer_provider().shutdown()"
    done = traced_script(f"{STARTS[process]}\n{ending}", WORKLOAD_PROCESS_KIND=process)
    assert done.returncode == 0, done.stderr
    names = {span["resource"]["attributes"]["service.name"] for span in _json_objects(done.stdout)}
    assert names == {f"workload-{process}"}


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
    done = traced_script(SCRIPT % PARENT, WORKLOAD_PROCESS_KIND="web", OTEL_SERVICE_NAME="named-by-me")
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
