"""The worker protocol over HTTP: sessions, claims, heartbeats, drain."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dispatch.models import Dispatch, Worker
from dispatch.sessions import _cache
from platform_site.access.models import Tenant
from tests.support.http import PROTOCOL, Api, WorkerApi, api_as
from tests.support.platform import a_run, a_task, queue_all

pytestmark = pytest.mark.django_db(transaction=True)

REGISTRATION = {
    "display_name": " reports-1 ",
    "protocol_version": 1,
    "executor_kinds": ["python", "mock", "python"],
    "max_concurrency": 4,
    "labels": {"zone": "eu"},
}
NOBODY = "00000000-0000-7000-8000-000000000007"


def ready(number: int = 1, **task: Any) -> None:
    """A run of independent tasks, queued."""
    a_run([a_task(f"t{index}", **task) for index in range(number)])
    queue_all()


def test_a_chain_runs_through_http() -> None:
    worker = WorkerApi()  # before the queueing: nothing is queued that no worker takes
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "b")])
    for key in "abc":
        queue_all()
        (lease,) = worker.leases()
        assert (lease["task_key"], lease["attempt"], lease["run_id"]) == (key, 1, str(run_id))
        assert lease["idempotency_key"] == f"{run_id}/{key}"
        assert worker.complete(lease, output={"n": 10**999}).json == {"outcome": "applied"}
    run = api_as("viewer").get(f"runs/{run_id}").json
    assert (run["state"], run["tasks"]["succeeded"]) == ("succeeded", 3)
    task = api_as("viewer").get(f"runs/{run_id}/tasks/c").json
    assert task["output"] == {"n": 10**999}


# --- sessions ---------------------------------------------------------------------------------------


def test_a_registration_makes_a_worker_of_the_tokens_tenant() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    answer = api_as("worker-enrolment", tenant=tenant).post("workers/register", REGISTRATION)
    assert answer.status == 201
    assert answer.headers["X-Worker-Protocol-Version"] == "1"
    assert answer.json["heartbeat_interval_ms"] == 5_000
    assert answer.json["lease_duration_ms"] == 15_000
    worker = Worker.objects.get(id=answer.json["worker_id"])
    assert (worker.display_name, worker.tenant_id, worker.labels) == ("reports-1", tenant.id, {"zone": "eu"})
    assert worker.executor_kinds == ["mock", "python"]
    assert answer.json["session_token"].encode() not in bytes(worker.session_digest)


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_only_an_enrolment_token_registers(role: str) -> None:
    api = api_as(role)
    api.headers = PROTOCOL
    assert (answer := api.post("workers/register", REGISTRATION)).status == 403, answer


def test_a_registration_that_is_wrong_says_everything_that_is_wrong() -> None:
    body = {
        "display_name": "",
        "protocol_version": "1",
        "executor_kinds": ["Python", 7],
        "max_concurrency": 1025,
        "labels": {"-": "x", "zone": "a\nb"},
        "surprise": 1,
    }
    answer = api_as("worker-enrolment").post("workers/register", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert sorted(answer.problems) == [
        ("$.display_name", "too_short"),
        ("$.executor_kinds[0]", "invalid_format"),
        ("$.executor_kinds[1]", "wrong_type"),
        ("$.labels.zone", "invalid_format"),
        ('$.labels["-"]', "invalid_format"),
        ("$.max_concurrency", "out_of_range"),
        ("$.protocol_version", "wrong_type"),
        ("$.surprise", "unknown_field"),
    ]
    assert not Worker.objects.exists()


def test_another_version_of_the_protocol_is_refused_before_anything_is_read() -> None:
    api = api_as("worker-enrolment")
    answer = api.post("workers/register", {"protocol_version": 2, "whatever": "it has"})
    assert (answer.status, answer.code) == (400, "worker_protocol_unsupported")
    api.headers = {}
    answer = api.post("workers/register", REGISTRATION)
    assert (answer.status, answer.code) == (400, "worker_protocol_unsupported")
    worker = WorkerApi()
    worker.api.headers = {"X-Worker-Protocol-Version": "2"}
    answer = worker.claim()
    assert (answer.status, answer.code) == (400, "worker_protocol_unsupported")
    assert answer.headers["X-Worker-Protocol-Version"] == "1"


@pytest.mark.parametrize("token", ["made-up", "x" * 200, "schön"])
def test_a_made_up_session_is_no_session(token: str) -> None:
    worker = WorkerApi()
    stranger = Api(None, {**PROTOCOL, "Authorization": f"Bearer {token}".encode().decode("latin-1")})
    answer = stranger.post(f"workers/{worker.id}/claims", {"slots": 1, "claim_no": 1})
    assert (answer.status, answer.code) == (401, "worker_session_invalid")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_session_is_of_its_own_worker_alone() -> None:
    one, other = WorkerApi(), WorkerApi()
    answer = one.api.post(f"workers/{other.id}/claims", {"slots": 1, "claim_no": 1})
    assert (answer.status, answer.code) == (401, "worker_session_invalid")
    assert api_as("viewer").get("runs", Authorization=f"Bearer {one.api.token}").status == 401


def test_the_session_costs_no_statement_once_it_is_known() -> None:
    worker = WorkerApi()
    worker.claim()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        worker.claim()
    assert not any("session_digest" in query["sql"] for query in queries)
    _cache.clear()
    with CaptureQueriesContext(connection) as queries:
        worker.claim()
    assert any("session_digest" in query["sql"] for query in queries)


# --- claims -----------------------------------------------------------------------------------------


def test_a_claim_gives_everything_that_an_attempt_needs() -> None:
    worker = WorkerApi()
    ready(input={"n": 10**999, "text": "ä"}, timeout_ms=60_000)
    answer = worker.claim(slots=16)
    (lease,) = answer.json["leases"]
    assert lease["input"] == {"n": 10**999, "text": "ä"}
    assert (lease["workflow_id"], lease["workflow_version"]) == ("flow", 1)
    assert (lease["executor_kind"], lease["action"], lease["attempt"]) == ("mock", "noop", 1)
    assert 14_000 < lease["lease_remaining_ms"] <= 15_000
    assert 59_000 < lease["attempt_remaining_ms"] <= 60_000
    assert lease["generation"] > 0
    assert lease["lease_token"].encode() not in bytes(Dispatch.objects.get().lease_digest)


def test_no_work_is_a_normal_answer() -> None:
    assert WorkerApi().claim().json["leases"] == []


def test_a_lost_answer_is_given_again() -> None:
    worker = WorkerApi()
    ready(3)
    first = worker.claim(slots=2, claim_no=7).json["leases"]
    again = worker.claim(slots=2, claim_no=7).json["leases"]
    assert len(first) == 2
    told = [(lease["dispatch_id"], lease["lease_token"], lease["generation"]) for lease in first]
    assert [(lease["dispatch_id"], lease["lease_token"], lease["generation"]) for lease in again] == told
    assert len(worker.claim(slots=2, claim_no=8).json["leases"]) == 1


def test_a_kind_that_was_not_registered_is_not_given() -> None:
    both = WorkerApi()
    ready(2)
    assert WorkerApi(executor_kinds=["python"]).leases(16) == []
    assert len(both.leases(16)) == 2


def test_another_tenants_work_is_not_given() -> None:
    ours = WorkerApi()
    ready()
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    assert WorkerApi(tenant=tenant).leases() == []
    assert len(ours.leases()) == 1


def test_more_than_was_registered_is_refused() -> None:
    answer = WorkerApi(max_concurrency=2).claim(slots=3)
    assert (answer.status, answer.code) == (409, "worker_capacity_exceeded")


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ({"slots": 0, "claim_no": 0}, [("$.slots", "out_of_range"), ("$.claim_no", "out_of_range")]),
        (
            {"slots": 1025, "claim_no": 1, "wait_ms": -1},
            [("$.slots", "out_of_range"), ("$.wait_ms", "out_of_range")],
        ),
        (
            {"slots": True, "claim_no": "1"},
            [("$.slots", "wrong_type"), ("$.claim_no", "wrong_type")],
        ),
        ({"slots": 1}, [("$.claim_no", "required")]),
        ({"slots": 1, "claim_no": 1, "slot": 2}, [("$.slot", "unknown_field")]),
        ([], [("$", "wrong_type")]),
    ],
)
def test_a_claim_that_is_wrong_says_where(body: Any, problems: list[tuple[str, str]]) -> None:
    answer = WorkerApi().post("claims", body)
    assert (answer.status, answer.code, answer.problems) == (400, "invalid_request", problems)


def test_broken_json_says_line_and_column() -> None:
    worker = WorkerApi()
    answer = worker.api.post(f"workers/{worker.id}/claims", raw=b'{"slots": 1,\n "claim_no": }')
    assert (answer.status, answer.code) == (400, "invalid_json")
    (detail,) = answer.json["error"]["details"]
    assert (detail["line"], detail["column"]) == (2, 14)


def test_a_body_that_is_too_large_is_413() -> None:
    worker = WorkerApi()
    answer = worker.api.post(f"workers/{worker.id}/completions", raw=b" " * (2**20 + 1))
    assert (answer.status, answer.code) == (413, "body_too_large")


def test_a_claim_costs_the_same_for_one_and_for_sixteen() -> None:
    worker = WorkerApi(max_concurrency=64)
    ready(40)
    worker.leases(1)  # what a process remembers, it remembers now
    counts = []
    for slots in (1, 16):
        with CaptureQueriesContext(connection) as queries:
            assert len(worker.leases(slots)) == slots
        counts.append(len(queries))
    assert counts[0] == counts[1]


# --- heartbeats and drain ---------------------------------------------------------------------------


def test_a_heartbeat_renews_and_tells_what_is_over() -> None:
    worker = WorkerApi()
    ready(2)
    kept, done = worker.leases(2)
    worker.complete(done)
    named = [
        {"dispatch_id": lease["dispatch_id"], "lease_token": lease["lease_token"]} for lease in (kept, done)
    ]
    named.append({"dispatch_id": NOBODY, "lease_token": "x"})
    answer = worker.post("heartbeat", {"leases": named, "answered_through": 1})
    assert answer.json["worker_state"] == "active"
    assert [lease["status"] for lease in answer.json["leases"]] == ["renewed", "revoked", "unknown"]
    assert answer.json["leases"][0]["lease_remaining_ms"] == 15_000
    assert "lease_remaining_ms" not in answer.json["leases"][1]


def test_a_heartbeat_is_bounded_and_read_strictly() -> None:
    worker = WorkerApi()
    named = [{"dispatch_id": NOBODY, "lease_token": "x"}] * 1025
    answer = worker.post("heartbeat", {"leases": named, "answered_through": 0})
    assert answer.problems == [("$.leases", "too_many")]
    answer = worker.post("heartbeat", {"leases": [{"dispatch_id": "zz", "lease_token": 1}]})
    assert answer.problems == [
        ("$.leases[0].dispatch_id", "invalid"),
        ("$.leases[0].lease_token", "wrong_type"),
        ("$.answered_through", "required"),
    ]


def test_a_session_that_ended_is_over_for_every_call() -> None:
    worker = WorkerApi()
    assert worker.post("drain").json["state"] == "stopped"
    for answer in (worker.post("heartbeat", {"leases": [], "answered_through": 0}), worker.claim()):
        assert (answer.status, answer.code) == (401, "worker_session_invalid")


def test_drain_with_a_lease_and_then_without() -> None:
    worker = WorkerApi()
    ready(2)
    (lease,) = worker.leases()
    summary = worker.post("drain", {}).json
    assert (summary["worker_id"], summary["state"], summary["active_leases"]) == (worker.id, "draining", 1)
    answer = worker.claim()
    assert (answer.status, answer.code) == (409, "worker_draining")
    refilled = worker.completions([(lease, {"kind": "success"})], {"slots": 1, "claim_no": 9}).json
    assert [each["outcome"] for each in refilled["outcomes"]] == ["applied"]
    assert worker.post("drain").json["state"] == "stopped"
    assert worker.post("drain", {"now": True}).problems == [("$.now", "unknown_field")]
