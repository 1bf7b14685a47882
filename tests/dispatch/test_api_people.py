"""Workers for people, and the cancel of a run."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from dispatch.api import people
from platform_site import wake
from platform_site.access.models import Tenant
from tests.support.facts import the_run
from tests.support.http import WorkerApi, api_as
from tests.support.platform import a_run, a_task, a_worker, queue_all
from workflows.models import StateEvent

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = UUID("00000000-0000-7000-8000-000000000007")


def stranger() -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


# --- workers ----------------------------------------------------------------------------------------


def test_workers_are_listed_latest_first_page_by_page() -> None:
    made = [WorkerApi(display_name=f"w{number}", labels={"n": str(number)}).id for number in range(5)]
    viewer = api_as("viewer")
    seen: list[str] = []
    cursor: dict[str, object] = {}
    while True:
        page = viewer.get("workers", {"limit": 2, **cursor}).json
        seen += [worker["worker_id"] for worker in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == made[::-1]
    first = viewer.get("workers", {"limit": 1}).json["items"][0]
    assert (first["display_name"], first["state"], first["labels"]) == ("w4", "active", {"n": "4"})


def test_workers_can_be_narrowed_to_states_and_cursors_know_it() -> None:
    gone, here, also = WorkerApi(), WorkerApi(), WorkerApi()
    gone.post("drain")
    viewer = api_as("viewer")
    page = viewer.get("workers", {"state": "active", "limit": 1}).json
    assert [worker["worker_id"] for worker in page["items"]] == [also.id]
    answer = viewer.get("workers", {"state": "stopped", "cursor": page["next_cursor"]})
    assert (answer.status, answer.code) == (400, "invalid_cursor")
    rest = viewer.get("workers", {"state": "active", "cursor": page["next_cursor"]}).json["items"]
    assert [worker["worker_id"] for worker in rest] == [here.id]
    both = viewer.get("workers", {"state": ["active", "stopped"]}).json["items"]
    assert {worker["worker_id"] for worker in both} == {gone.id, here.id, also.id}
    assert viewer.get("workers", {"state": "asleep"}).status == 400


def test_a_list_of_workers_costs_the_same_however_many_there_are() -> None:
    viewer = api_as("viewer")
    counts = []
    for _ in range(2):
        WorkerApi()
        viewer.get("workers")
        with CaptureQueriesContext(connection) as queries:
            viewer.get("workers")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_one_worker_with_what_it_holds() -> None:
    worker = WorkerApi(max_concurrency=3)
    a_run([a_task("a"), a_task("b")])
    queue_all()
    worker.leases(2)
    found = api_as("viewer").get(f"workers/{worker.id}").json
    assert (found["active_leases"], found["max_concurrency"], found["stopped_at"]) == (2, 3, None)
    assert "session" not in str(found)


def test_another_tenants_worker_is_not_there() -> None:
    worker = WorkerApi(tenant=stranger())
    viewer = api_as("viewer")
    answer = viewer.get(f"workers/{worker.id}")
    assert (answer.status, answer.code) == (404, "not_found")
    assert viewer.get("workers").json["items"] == []
    assert viewer.get("workers/not-an-id").status == 404


# --- cancel -----------------------------------------------------------------------------------------


def test_a_cancel_is_carried_out_at_once_and_may_be_repeated() -> None:
    worker = WorkerApi()
    run_id = a_run([a_task("a"), a_task("b", "a")])
    queue_all()
    (lease,) = worker.leases()
    operator = api_as("operator")
    answer = operator.post(f"runs/{run_id}/cancel")
    assert answer.status == 200
    assert (answer.json["state"], answer.json["outcome"]) == ("canceled", "canceled")
    assert answer.json["cancel_requested_at"] is not None
    again = operator.post(f"runs/{run_id}/cancel", {})
    assert again.json == answer.json
    assert worker.complete(lease).code == "lease_lost"
    run = operator.get(f"runs/{run_id}").json
    assert (run["state"], run["tasks"]["canceled"]) == ("canceled", 2)


def test_a_finished_run_is_left_as_it_is_and_says_so() -> None:
    worker = WorkerApi()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.complete(worker.leases()[0])
    answer = api_as("operator").post(f"runs/{run_id}/cancel")
    assert (answer.status, answer.json["state"], answer.json["outcome"]) == (200, "succeeded", "finished")
    assert answer.json["cancel_requested_at"] is None


def test_a_cancel_carried_out_names_who_asked_and_wakes_the_coordinator_for_the_freed_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states: list[str] = []
    a_worker()
    run_id = a_run([a_task("a"), a_task("b")], concurrency=1)
    queue_all()
    monkeypatch.setattr(wake, "coordinator", lambda: states.append(the_run(run_id).state))
    operator = api_as("operator")
    assert operator.post(f"runs/{run_id}/cancel").json["state"] == "canceled"
    assert states[-1] == "canceled"
    asked, *rest = StateEvent.objects.filter(run=run_id, reason="cancel requested").order_by("seq")
    assert asked.actor
    assert {event.actor for event in StateEvent.objects.filter(run=run_id, seq__gte=asked.seq)} == {
        asked.actor
    }
    assert rest


@pytest.mark.parametrize("error", [OperationalError("busy"), IntegrityError("no"), RuntimeError("a bug")])
def test_what_cannot_be_carried_out_at_once_is_left_to_the_coordinator(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(run_id: UUID, **_: object) -> bool:
        raise error

    monkeypatch.setattr(people, "converge_cancellation", busy)
    run_id = a_run([a_task("a")])
    answer = api_as("operator").post(f"runs/{run_id}/cancel")
    assert (answer.status, answer.json["state"], answer.json["outcome"]) == (200, "pending", "requested")
    assert api_as("viewer").get(f"runs/{run_id}").json["cancel_requested_at"] is not None


@pytest.mark.parametrize("role", ["viewer", "worker-enrolment"])
def test_only_operators_cancel(role: str) -> None:
    run_id = a_run([a_task("a")])
    assert api_as(role).post(f"runs/{run_id}/cancel").status == 403


def test_another_tenants_run_cannot_be_canceled() -> None:
    run_id = a_run([a_task("a")])
    operator = api_as("operator", tenant=stranger())
    for each in (run_id, NOBODY):
        answer = operator.post(f"runs/{each}/cancel")
        assert (answer.status, answer.code) == (404, "not_found")
    assert api_as("viewer").get(f"runs/{run_id}").json["cancel_requested_at"] is None


def test_a_cancel_takes_no_fields() -> None:
    run_id = a_run([a_task("a")])
    answer = api_as("operator").post(f"runs/{run_id}/cancel", {"force": True})
    assert (answer.status, answer.problems) == (400, [("$.force", "unknown_field")])
