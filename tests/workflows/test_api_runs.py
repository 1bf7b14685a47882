"""Runs, tasks and events over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from platform_site.access.models import Tenant
from platform_site.api.pagination import Key, Keyset
from tests.support.http import Api, api_as
from tests.support.platform import a_run, a_task, a_worker, published, queue_all, started
from workflows.models import Run
from workflows.queries.cursors import Cursor

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = UUID("00000000-0000-7000-8000-000000000007")
HUGE = 10**999 + 7
SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}


@pytest.fixture
def operator() -> Api:
    return api_as("operator")


def stranger() -> Api:
    return api_as("operator", tenant=Tenant.objects.create(slug="acme", name="Acme"))


# --- starting ---------------------------------------------------------------------------------------


def test_start_a_run_with_everything(operator: Api) -> None:
    published("flow", [a_task("a"), a_task("b", "a")])
    body = {"params": {"n": HUGE, "day": "ä"}, "priority": -10, "labels": {"team": "finance", "x": ""}}
    answer = operator.post("workflows/flow/versions/1/runs", body)
    assert answer.status == 202
    assert (answer.json["workflow_id"], answer.json["workflow_version"]) == ("flow", 1)
    run = operator.get(f"runs/{answer.json['run_id']}").json
    assert (run["state"], run["params"], run["labels"], run["priority"]) == (
        "pending",
        body["params"],
        body["labels"],
        -10,
    )
    assert (run["task_count"], run["tasks"]["ready"], run["tasks"]["waiting_dependencies"]) == (2, 1, 1)
    assert (run["created_by"], run["cancel_requested_at"]) == ("token:test operator", None)


def test_the_latest_version_is_the_one_started_without_a_number(operator: Api) -> None:
    published("flow", [a_task("a")])
    operator.post(
        "workflows/flow/versions", {"id": "flow", "concurrency": 1, "tasks": [a_task("a"), a_task("b")]}
    )
    assert operator.post("workflows/flow/runs").json["workflow_version"] == 2
    assert operator.post("workflows/flow/versions/1/runs", {}).json["workflow_version"] == 1
    assert operator.get("workflows/flow").json["last_run"]["state"] == "pending"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"priority": 11}, ("$.priority", "out_of_range")),
        ({"priority": 1.0}, ("$.priority", "wrong_type")),
        ({"params": []}, ("$.params", "wrong_type")),
        ({"labels": {"a": 1}}, ("$.labels.a", "wrong_type")),
        ({"labels": {"a b": "1"}}, ('$.labels["a b"]', "invalid_format")),
        ({"labels": {"a": "x" * 65}}, ("$.labels.a", "invalid_format")),
        ({"labels": {f"l{number}": "" for number in range(17)}}, ("$.labels", "too_many")),
        ({"version": 1}, ("$.version", "unknown_field")),
        ([], ("$", "wrong_type")),
    ],
)
def test_a_start_is_read_strictly(operator: Api, body: Any, problem: tuple[str, str]) -> None:
    published("flow", [a_task("a")])
    answer = operator.post("workflows/flow/runs", body)
    assert (answer.status, answer.code, answer.problems) == (400, "invalid_request", [problem])
    assert not Run.objects.exists()


def test_params_that_do_not_fit_say_where(operator: Api) -> None:
    published("flow", [a_task("a")], params=SCHEMA)
    answer = operator.post("workflows/flow/runs", {"params": {"day": 3}})
    assert (answer.status, answer.code) == (400, "params_invalid")
    assert answer.problems[0][0].endswith(".day")
    assert operator.post("workflows/flow/runs").code == "params_invalid"
    assert operator.post("workflows/flow/runs", {"params": {"day": "x" * 70_000}}).code == "params_invalid"
    assert not Run.objects.exists()


def test_a_repeated_start_is_one_run(operator: Api) -> None:
    published("flow", [a_task("a")])
    body = {"labels": {"n": "1"}}
    first = operator.post("workflows/flow/runs", body, Idempotency_Key="k1")
    again = operator.post("workflows/flow/runs", body, Idempotency_Key="k1")
    assert (first.status, again.status, first.json) == (202, 202, again.json)
    other = operator.post("workflows/flow/runs", {"labels": {"n": "2"}}, Idempotency_Key="k1")
    assert (other.status, other.code) == (409, "idempotency_conflict")
    assert Run.objects.count() == 1
    assert operator.post("workflows/flow/runs", {"priority": 99}, Idempotency_Key="k2").status == 400
    assert operator.post("workflows/flow/runs", {"priority": 9}, Idempotency_Key="k2").status == 202


def test_a_start_of_nothing(operator: Api) -> None:
    published("flow", [a_task("a")])
    for path in ("workflows/nothing/runs", "workflows/flow/versions/2/runs"):
        answer = operator.post(path)
        assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize("role", ["viewer", "worker-enrolment"])
def test_only_operators_start(role: str) -> None:
    published("flow", [a_task("a")])
    api = api_as(role)
    for path in ("workflows/flow/runs", "workflows/flow/versions/1/runs"):
        assert api.post(path).status == 403
    assert api_as("admin").post("workflows/flow/runs").status == 202


# --- reading ----------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_page_by_page(operator: Api) -> None:
    published("flow", [a_task("a")])
    ids = [str(started("flow")) for _ in range(5)]
    seen, cursor = [], {}
    while True:
        page = operator.get("runs", {"limit": 2, **cursor}).json
        seen += [item["run_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == ids[::-1]


def test_runs_are_narrowed_by_workflow_state_and_labels(operator: Api) -> None:
    for name in ("flow", "other"):
        published(name, [a_task("a")])
    blue = started("flow", labels={"color": "blue", "size": "1=2"})
    red = started("flow", labels={"color": "red"})
    gone = started("other", labels={"color": "blue"})
    operator.post(f"runs/{gone}/cancel")

    def ids(**query: Any) -> list[str]:
        return [item["run_id"] for item in operator.get("runs", query).json["items"]]

    assert ids(workflow_id="flow") == [str(red), str(blue)]
    assert ids(workflow_id="nothing") == []
    assert ids(state="canceled") == [str(gone)]
    assert ids(state=["canceled", "pending"]) == [str(gone), str(red), str(blue)]
    assert ids(label="color=blue") == [str(gone), str(blue)]
    assert ids(label=["color=blue", "size=1=2"]) == [str(blue)]
    for wrong in ({"state": "lost"}, {"label": "color"}, {"label": "=x"}):
        assert operator.get("runs", wrong).status == 400


def test_a_cursor_belongs_to_its_filters(operator: Api) -> None:
    published("flow", [a_task("a")])
    for _ in range(3):
        started("flow")
    cursor = operator.get("runs", {"limit": 1, "workflow_id": "flow"}).json["next_cursor"]
    assert operator.get("runs", {"workflow_id": "flow", "cursor": cursor}).status == 200
    for query in ({}, {"workflow_id": "other"}, {"workflow_id": "flow", "state": "pending"}):
        answer = operator.get("runs", {**query, "cursor": cursor})
        assert (answer.status, answer.code) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    "position",
    [
        Cursor("older", ("yesterday", str(NOBODY))),
        Cursor("older", ("2026-01-01T00:00:00", str(NOBODY))),
        Cursor("older", ("2026-01-01T00:00:00+00:00", "nobody\x00")),
        Cursor("older", (1, 2)),
    ],
)
def test_a_forged_position_is_an_invalid_cursor(operator: Api, position: Cursor) -> None:
    filters = {"tenant": Tenant.objects.get(slug="default").id, "states": [], "workflow": "", "labels": {}}
    forged = Keyset("runs", [Key("position", str)]).write([position.encode()], filters=filters)
    answer = operator.get("runs", {"cursor": forged})
    assert (answer.status, answer.code) == (400, "invalid_cursor")


def test_tasks_are_listed_in_the_order_of_the_definition(operator: Api) -> None:
    run_id = a_run([a_task("z"), a_task("a", "z"), a_task("m")])
    first = operator.get(f"runs/{run_id}/tasks", {"limit": 2}).json
    rest = operator.get(f"runs/{run_id}/tasks", {"limit": 2, "cursor": first["next_cursor"]}).json
    assert [task["key"] for task in first["items"] + rest["items"]] == ["z", "a", "m"]
    assert rest["next_cursor"] is None
    ready = operator.get(f"runs/{run_id}/tasks", {"state": "ready"}).json["items"]
    assert [task["key"] for task in ready] == ["z", "m"]
    assert operator.get(f"runs/{run_id}/tasks", {"state": "failed"}).json["items"] == []
    assert operator.get(f"runs/{run_id}/tasks", {"state": ["ready", "lost"]}).status == 400


def test_a_task_comes_with_its_attempts_its_definition_and_its_output(operator: Api) -> None:
    worker = a_worker()
    run_id = a_run([a_task("first"), a_task("only", "first", input={"n": HUGE}, retry={"max_attempts": 3})])
    queue_all()
    worker.complete(worker.claim().leases)
    queue_all()
    worker.complete(worker.claim().leases, output={"big": HUGE, "list": [1, None]})
    task = operator.get(f"runs/{run_id}/tasks/only").json
    assert task["state"] == "succeeded"
    assert task["output"] == {"big": HUGE, "list": [1, None]}
    assert task["definition"]["input"] == {"n": HUGE}
    assert task["max_attempts"] == 3
    assert task["dependencies"] == [{"key": "first", "state": "succeeded"}]
    (attempt,) = task["attempt_list"]
    assert (attempt["number"], attempt["state"], attempt["worker_id"]) == (
        1,
        "succeeded",
        str(worker.identity.id),
    )
    assert operator.get(f"runs/{run_id}/tasks/only/logs").json == {"items": [], "next_cursor": None}


def test_events_are_followed_without_loss(operator: Api) -> None:
    run_id = a_run([a_task("a"), a_task("b", "a")])
    operator.post(f"runs/{run_id}/cancel")
    path = f"runs/{run_id}/events"
    everything = operator.get(path).json["items"]
    assert [event["seq"] for event in everything] == list(range(1, len(everything) + 1))
    assert everything[0]["entity"] == "run"
    first = operator.get(path, {"limit": 2}).json
    rest = operator.get(path, {"cursor": first["next_cursor"]}).json
    assert first["items"] + rest["items"] == everything
    assert rest["next_cursor"] is None
    assert operator.get(path, {"after": 2}).json["items"] == everything[2:]
    assert operator.get(path, {"after": len(everything)}).json == {"items": [], "next_cursor": None}
    assert operator.get(path, {"after": -1}).problems == [("$.after", "min_value")]
    run = operator.get(f"runs/{run_id}").json
    assert run["event_count"] == len(everything)


@pytest.mark.parametrize("path", ["", "/tasks", "/tasks/a", "/tasks/a/logs", "/events"])
def test_another_tenants_run_is_not_there(operator: Api, path: str) -> None:
    run_id = a_run([a_task("a")])
    other = stranger()
    assert operator.get(f"runs/{run_id}{path}").status == 200
    for each in (run_id, NOBODY):
        answer = other.get(f"runs/{each}{path}")
        assert (answer.status, answer.code) == (404, "not_found")
    assert other.get("runs").json["items"] == []
    assert operator.get(f"runs/not-an-id{path}").status == 404
    assert api_as("worker-enrolment").get(f"runs/{run_id}{path}").status == 403
    assert api_as("viewer").get(f"runs/{run_id}{path}").status == 200


def test_a_task_that_is_not_there(operator: Api) -> None:
    run_id = a_run([a_task("a")])
    for path in ("nothing", "%00", "a[3]", "nothing/logs"):
        answer = operator.get(f"runs/{run_id}/tasks/{path}")
        assert (answer.status, answer.code) == (404, "not_found"), path


def test_reads_cost_the_same_for_one_task_and_for_fifty(operator: Api) -> None:
    counts: list[list[int]] = []
    for number in (1, 50):
        run_id = a_run([a_task(f"t{index}") for index in range(number)], name=f"flow-{number}")
        costs = []
        for path in ("", "/tasks", "/tasks/t0", "/events"):
            operator.get(f"runs/{run_id}{path}")
            with CaptureQueriesContext(connection) as queries:
                assert operator.get(f"runs/{run_id}{path}").status == 200
            costs.append(len(queries))
        counts.append(costs)
    assert counts[0] == counts[1]
