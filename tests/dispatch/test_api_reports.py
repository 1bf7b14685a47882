"""Progress and logs over HTTP, under the lease."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http import WorkerApi, api_as
from tests.support.platform import a_run, a_task, queue_all
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def held() -> tuple[WorkerApi, dict[str, Any], str]:
    """A worker, its lease, and the address of the task for people."""
    worker = WorkerApi()
    run_id = a_run([a_task("only")])
    queue_all()
    (lease,) = worker.leases()
    return worker, lease, f"runs/{run_id}/tasks/only"


def report(worker: WorkerApi, lease: dict[str, Any], call: str, **body: Any) -> Any:
    body = {"lease_token": lease["lease_token"], **body}
    return worker.post(f"leases/{lease['dispatch_id']}/{call}", body)


def test_the_latest_progress_is_kept_and_changes_no_revision(held: Any) -> None:
    worker, lease, path = held
    revision = Run.objects.get().revision
    assert report(worker, lease, "progress", percent=12, text="page 1").json == {}
    assert report(worker, lease, "progress", percent=40.9, text="page 4").json == {}
    assert api_as("viewer").get(path).json["progress"] == {"percent": 40, "text": "page 4"}
    assert Run.objects.get().revision == revision


def test_progress_text_is_cleaned_and_cut(held: Any) -> None:
    worker, lease, path = held
    assert report(worker, lease, "progress", text="a\x00\ud800" + "é" * 300).status == 200
    text = api_as("viewer").get(path).json["progress"]["text"]
    assert text.startswith("a\ufffd\ufffdé")
    assert len(text.encode()) <= 256


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"percent": 101}, ("$.percent", "out_of_range")),
        ({"percent": float("nan")}, ("$.percent", "invalid_number")),
        ({"percent": "5"}, ("$.percent", "wrong_type")),
        ({"text": 5}, ("$.text", "wrong_type")),
        ({"note": ""}, ("$.note", "unknown_field")),
    ],
)
def test_progress_is_read_strictly(held: Any, body: dict[str, Any], problem: tuple[str, str]) -> None:
    worker, lease, _ = held
    answer = report(worker, lease, "progress", **body)
    assert (answer.status, answer.problems) == (400, [problem])


def test_lines_are_kept_in_order_and_cleaned(held: Any) -> None:
    worker, lease, path = held
    lines = [{"level": "info", "text": "one"}, {"level": "error", "text": "two\x00\ud800"}]
    assert report(worker, lease, "logs", lines=lines).json == {"accepted": 2, "truncated": False}
    more = [{"level": "debug", "text": "x" * 10_000}]
    assert report(worker, lease, "logs", lines=more).json["accepted"] == 1
    kept = api_as("viewer").get(f"{path}/logs").json["items"]
    assert [(line["level"], line["text"][:6], line["cleaned"]) for line in kept] == [
        ("info", "one", False),
        ("error", "two\ufffd\ufffd", True),
        ("debug", "xxxxxx", True),
    ]
    assert len(kept[2]["text"].encode()) <= 8 * 1024
    assert {line["attempt"] for line in kept} == {1}


def test_a_full_log_says_so(held: Any) -> None:
    worker, lease, path = held
    lines = [{"level": "info", "text": "x" * 8_000}] * 100
    assert report(worker, lease, "logs", lines=lines).json == {"accepted": 100, "truncated": False}
    answer = report(worker, lease, "logs", lines=lines).json
    assert answer["truncated"]
    assert answer["accepted"] < 100
    assert api_as("viewer").get(path).json["attempt_list"][0]["log_truncated"]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], ("$.lines", "too_few")),
        ([{"level": "info", "text": ""}] * 1001, ("$.lines", "too_many")),
        ([{"level": "loud", "text": ""}], ("$.lines[0].level", "invalid_choice")),
        ([{"level": "info", "text": None}], ("$.lines[0].text", "wrong_type")),
    ],
)
def test_lines_are_read_strictly(held: Any, lines: Any, problem: tuple[str, str]) -> None:
    worker, lease, _ = held
    answer = report(worker, lease, "logs", lines=lines)
    assert (answer.status, answer.problems) == (400, [problem])


@pytest.mark.parametrize("call", ["progress", "logs"])
def test_reports_need_the_lease(held: Any, call: str) -> None:
    worker, lease, path = held
    body: dict[str, Any] = {"lines": [{"level": "info", "text": "late"}]} if call == "logs" else {}
    for wrong in (
        {**lease, "lease_token": "x"},
        {**lease, "dispatch_id": "00000000-0000-7000-8000-000000000007"},
    ):
        answer = report(worker, wrong, call, **body)
        assert (answer.status, answer.code) == (409, "lease_lost")
    assert (answer := report(WorkerApi(), lease, call, **body)).status == 409, answer
    worker.complete(lease)
    answer = report(worker, lease, call, **body)
    assert (answer.status, answer.code) == (409, "lease_lost")
    assert api_as("viewer").get(f"{path}/logs").json["items"] == []
