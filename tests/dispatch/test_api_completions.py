"""Results over HTTP, one by one and many at once; releases."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from dispatch.api import views
from dispatch.operations.complete import Outcome
from tests.support.http import WorkerApi, api_as
from tests.support.platform import a_run, a_task, queue_all
from tests.support.races import held_lock, rival

pytestmark = pytest.mark.django_db(transaction=True)

SUCCESS = {"kind": "success"}


def leases(number: int, worker: WorkerApi | None = None, *, slots: int | None = None) -> Any:
    """A worker, its leases on a new run of so many tasks, and the run."""
    worker = worker or WorkerApi(max_concurrency=64)
    run_id = a_run([a_task(f"t{index}") for index in range(number)])
    queue_all()
    return worker, worker.leases(slots or number), run_id


def task(run_id: object, lease: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = api_as("viewer").get(f"runs/{run_id}/tasks/{lease['task_key']}").json
    return found


def outcomes(answer: Any) -> list[str]:
    assert answer.status == 200, answer
    return [each["outcome"] for each in answer.json["outcomes"]]


def test_a_result_sent_again_is_replayed_and_another_one_conflicts() -> None:
    worker, (lease,), run_id = leases(1)
    assert worker.complete(lease, output=[1]).json == {"outcome": "applied"}
    assert worker.complete(lease, output=[1]).json == {"outcome": "replayed"}
    answer = worker.complete(lease, output=[2])
    assert (answer.status, answer.code) == (409, "result_conflict")
    assert task(run_id, lease)["output"] == [1]


def test_a_wrong_token_and_an_unknown_dispatch_are_lease_lost() -> None:
    worker, (lease,), run_id = leases(1)
    for wrong in (
        {**lease, "lease_token": "x"},
        {**lease, "dispatch_id": "00000000-0000-7000-8000-000000000007"},
    ):
        answer = worker.complete(wrong)
        assert (answer.status, answer.code) == (409, "lease_lost")
    assert task(run_id, lease)["state"] == "running"


def test_another_workers_lease_is_lost_to_this_one() -> None:
    _, (lease,), _ = leases(1)
    answer = WorkerApi().complete(lease)
    assert (answer.status, answer.code) == (409, "lease_lost")


def test_failures_keep_their_code_and_a_cleaned_message() -> None:
    worker, (lease,), run_id = leases(1)
    worker.complete(lease, kind="permanent_failure", error_code="bad_row", error_message="row\x007 \ud800")
    found = task(run_id, lease)
    assert (found["state"], found["error_code"]) == ("failed", "bad_row")
    assert found["error_message"] == "row\ufffd7 \ufffd"


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"kind": "success", "output": "x" * 70_000}, "result_too_large"),
        ({"kind": "success", "output": {"a": "nul \x00"}}, "result_invalid"),
        ({"kind": "success", "output": "half \ud800"}, "result_invalid"),
        ({"kind": "success", "output": float("nan")}, "result_invalid"),
        ({"kind": "success", "output": {"x": 10**1000}}, "result_invalid"),
        ({"kind": "done"}, "result_invalid"),
        ({"kind": "timed_out"}, "result_invalid"),
        ({"kind": "released"}, "result_invalid"),
        ({"kind": ["success"]}, "result_invalid"),
        ({"kind": "permanent_failure", "error_code": 7}, "result_invalid"),
        ("success", "result_invalid"),
        (None, "result_invalid"),
    ],
)
def test_one_bad_item_is_settled_and_spoils_no_other(result: Any, code: str) -> None:
    worker, (bad, good), run_id = leases(2)
    sent = [(bad, result), (good, {"kind": "success", "output": 1})]
    assert outcomes(worker.completions(sent)) == ["applied", "applied"]
    found = task(run_id, bad)
    assert (found["state"], found["error_code"]) == ("failed", code)
    assert found["attempt_list"][0]["state"] == "failed"
    assert task(run_id, good)["state"] == "succeeded"
    assert outcomes(worker.completions(sent)) == ["replayed", "replayed"]


def test_an_output_nested_as_deep_as_it_can_be_read_is_settled() -> None:
    worker, (deep, good), run_id = leases(2)
    nested = '{"kind":"success","output":' + "[" * 300 + "]" * 300 + "}"
    items = ",".join(
        f'{{"dispatch_id":"{lease["dispatch_id"]}","lease_token":"{lease["lease_token"]}","result":{result}}}'
        for lease, result in ((deep, nested), (good, '{"kind":"success"}'))
    )
    answer = worker.post("completions", raw=f'{{"items":[{items}]}}'.encode())
    assert outcomes(answer) == ["applied", "applied"]
    assert task(run_id, deep)["error_code"] == "result_invalid"


def test_what_a_newer_worker_adds_to_a_result_is_left_alone() -> None:
    worker, (lease,), run_id = leases(1)
    assert worker.complete(lease, output=1, usage={"seconds": 3}).json == {"outcome": "applied"}
    assert task(run_id, lease)["output"] == 1


def test_every_item_has_its_own_outcome() -> None:
    worker, (one, two, three), _ = leases(3)
    worker.complete(one, output=1)
    answer = worker.completions(
        [
            (one, {"kind": "success", "output": 1}),
            (two, SUCCESS),
            ({**three, "lease_token": "x"}, SUCCESS),
            (one, {"kind": "success", "output": 2}),
        ]
    )
    assert outcomes(answer) == ["replayed", "applied", "lease_lost", "result_conflict"]
    assert [each["dispatch_id"] for each in answer.json["outcomes"]] == [
        lease["dispatch_id"] for lease in (one, two, three, one)
    ]


def test_a_refill_comes_with_the_outcomes_and_again_when_it_is_sent_again() -> None:
    worker, (first,), _ = leases(3, slots=1)
    refill = {"slots": 2, "claim_no": 50}
    answer = worker.completions([(first, SUCCESS)], refill)
    again = worker.completions([(first, SUCCESS)], refill)
    assert (outcomes(answer), outcomes(again)) == (["applied"], ["replayed"])
    told = [(lease["dispatch_id"], lease["lease_token"]) for lease in answer.json["leases"]]
    assert len(told) == 2
    assert [(lease["dispatch_id"], lease["lease_token"]) for lease in again.json["leases"]] == told
    assert "refill" not in answer.json


def test_a_refill_that_fails_spoils_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, (lease,), run_id = leases(1)

    def away(**_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(views, "claim", away)
    answer = worker.completions([(lease, SUCCESS)], {"slots": 1, "claim_no": 50})
    assert outcomes(answer) == ["applied"]
    assert answer.json["refill"]["code"] == "unavailable"
    assert answer.json["refill"]["retry_after_ms"] > 0
    assert answer.json["leases"] == []
    assert task(run_id, lease)["state"] == "succeeded"


def test_a_refill_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatch.operations.claim.CONTENDED_WAIT_MS", 60_000)
    worker, (lease,), _ = leases(1)
    busy = a_run([a_task("a")], name="busy")
    queue_all()
    with (
        held_lock("SELECT 1 FROM workflows_run WHERE id = %s FOR NO KEY UPDATE", [busy]),
        rival(lambda: worker.completions([(lease, SUCCESS)], {"slots": 1, "claim_no": 50})) as call,
    ):
        answer = call.result(timeout=5)
    assert outcomes(answer) == ["applied"]
    assert answer.json["leases"] == []
    assert "refill" not in answer.json


def test_a_refill_beyond_the_registration_is_told_beside_the_outcomes() -> None:
    worker, (lease,), _ = leases(1, WorkerApi(max_concurrency=1))
    answer = worker.completions([(lease, SUCCESS)], {"slots": 2, "claim_no": 50})
    assert outcomes(answer) == ["applied"]
    assert answer.json["refill"]["code"] == "worker_capacity_exceeded"


def test_a_busy_run_is_503_for_one_result_and_an_outcome_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, (lease,), _ = leases(1)
    monkeypatch.setattr(views, "complete", lambda items, **_: [Outcome.RETRY] * len(items))
    answer = worker.complete(lease)
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "1")
    assert outcomes(worker.completions([(lease, SUCCESS)])) == ["retry"]


def test_completions_are_read_strictly() -> None:
    worker, (lease,), run_id = leases(1)
    body = {
        "items": [
            {"dispatch_id": lease["dispatch_id"], "lease_token": lease["lease_token"], "result": SUCCESS},
            {"dispatch_id": 5, "lease_token": "\ud800", "surprise": 1},
        ],
        "refill": {"slots": 0, "claim_no": 1},
    }
    answer = worker.post("completions", body)
    assert (answer.status, answer.problems) == (
        400,
        [
            ("$.items[1].dispatch_id", "wrong_type"),
            ("$.items[1].lease_token", "invalid_text"),
            ("$.items[1].result", "required"),
            ("$.items[1].surprise", "unknown_field"),
            ("$.refill.slots", "out_of_range"),
        ],
    )
    assert worker.post("completions", {"items": []}).problems == [("$.items", "too_few")]
    one = body["items"][0]  # type: ignore[index] # a list, as written above
    assert worker.post("completions", {"items": [one] * 1025}).problems == [("$.items", "too_many")]
    assert task(run_id, lease)["state"] == "running"


def test_completions_cost_the_same_for_one_and_for_sixteen() -> None:
    worker, held, _ = leases(40)
    worker.completions([(held.pop(), SUCCESS)])  # what a process remembers, it remembers now
    counts = []
    for number in (1, 16):
        sent = [(held.pop(), SUCCESS) for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            assert outcomes(worker.completions(sent)) == ["applied"] * number
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_release_gives_the_task_back_and_may_be_repeated() -> None:
    worker, (lease,), run_id = leases(1)
    body = {"lease_token": lease["lease_token"]}
    path = f"leases/{lease['dispatch_id']}/release"
    assert worker.post(path, body).json == {"outcome": "applied"}
    assert worker.post(path, body).json == {"outcome": "replayed"}
    found = task(run_id, lease)
    assert (found["state"], found["attempts_used"]) == ("ready", 0)
    answer = worker.post(path, {"lease_token": "x"})
    assert (answer.status, answer.code) == (409, "lease_lost")
    assert worker.post(path, {}).problems == [("$.lease_token", "required")]
