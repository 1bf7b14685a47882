"""Workflows and versions over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from platform_site.access.models import Tenant
from tests.support.http import Api, api_as
from tests.support.platform import a_definition, a_task
from workflows.models import Workflow, WorkflowVersion

pytestmark = pytest.mark.django_db

HUGE = 10**999 + 7


def definition(name: str = "flow", *keys: str, **more: Any) -> dict[str, Any]:
    return {**a_definition(name, [a_task(key) for key in keys or ("only",)]), **more}


@pytest.fixture
def operator() -> Api:
    return api_as("operator")


@pytest.fixture
def stranger() -> Api:
    return api_as("operator", tenant=Tenant.objects.create(slug="acme", name="Acme"))


def test_publish_a_workflow_and_its_next_version(operator: Api) -> None:
    answer = operator.post("workflows", definition())
    assert answer.status == 201
    assert (answer.json["workflow_id"], answer.json["version"], answer.json["warnings"]) == ("flow", 1, [])
    answer = operator.post("workflows/flow/versions", definition("flow", "a", "b"))
    assert (answer.status, answer.json["version"]) == (201, 2)
    found = operator.get("workflows/flow").json
    assert (found["latest_version"], found["task_count"], found["last_run"]) == (2, 2, None)
    assert found["created_by"] == "token:test operator"


def test_a_version_gives_its_definition_to_the_last_digit(operator: Api) -> None:
    tasks = [{**a_task("only", input={"n": HUGE, "x": 0.1, "text": "ä\u2028"})}]
    operator.post("workflows", definition(tasks=tasks))
    answer = operator.get("workflows/flow/versions/1")
    assert answer.json["definition"]["tasks"][0]["input"] == {"n": HUGE, "x": 0.1, "text": "ä\u2028"}
    assert str(HUGE).encode() in answer.response.content
    assert answer.json["definition"]["tasks"][0]["timeout_ms"] == 300_000
    stored = WorkflowVersion.objects.get()
    assert answer.json["hash"] == bytes(stored.digest).hex()
    assert answer.json["definition"] == json.loads(stored.definition)


def test_a_task_without_an_executor_is_published_with_a_warning(operator: Api) -> None:
    answer = operator.post("workflows", definition(tasks=[{"key": "a", "action": "noop"}]))
    assert answer.status == 201
    assert [warning["code"] for warning in answer.json["warnings"]] == ["executor_defaulted"]


def test_a_definition_that_is_wrong_says_everything_and_stores_nothing(operator: Api) -> None:
    tasks = [a_task("a", "b"), a_task("a"), {"key": "C", "surprise": 1}]
    answer = operator.post("workflows", definition(tasks=tasks, concurrency=0))
    assert (answer.status, answer.code) == (400, "definition_invalid")
    paths = {path for path, _ in answer.problems}
    assert {"$.concurrency", "$.tasks[0].depends_on[0]", "$.tasks[1].key", "$.tasks[2].surprise"} <= paths
    assert not Workflow.objects.exists()


def test_an_executor_that_is_not_in_the_settings_is_refused(operator: Api, settings: Any) -> None:
    tasks = [{**a_task("a"), "executor": "container"}]
    answer = operator.post("workflows", definition(tasks=tasks))
    assert answer.problems[0][0] == "$.tasks[0].executor"
    settings.WORKLOAD = replace(settings.WORKLOAD, executor_kinds=("mock", "container"))
    assert operator.post("workflows", definition(tasks=tasks)).status == 201


def test_broken_json_says_line_and_column(operator: Api) -> None:
    answer = operator.post("workflows", raw=b'{\n  "id": "flow",,\n}')
    assert (answer.status, answer.code) == (400, "invalid_json")
    (detail,) = answer.json["error"]["details"]
    assert (detail["line"], detail["column"]) == (2, 16)
    assert "line 2" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"id": "a", "id": "b"}', "duplicate_key"),
        (b'{"concurrency": NaN}', "invalid_number"),
        (b'{"concurrency": 1' + b"0" * 1000 + b"}", "integer_too_long"),
        (b'{"id": "\\u0000"}', "invalid_text"),
        (b'{"id": "\xff"}', "invalid_utf8"),
        (b"[" * 200 + b"]" * 200, "too_deep"),
    ],
)
def test_json_is_read_strictly(operator: Api, raw: bytes, code: str) -> None:
    answer = operator.post("workflows", raw=raw)
    assert (answer.status, answer.code, answer.problems[0][1]) == (400, "invalid_json", code)


def test_a_definition_may_have_16_mib_and_no_more(operator: Api) -> None:
    padded = json.dumps(definition()).encode()
    assert operator.post("workflows", raw=padded + b" " * (2 * 2**20)).status == 201
    answer = operator.post("workflows", raw=padded.ljust(16 * 2**20 + 1))
    assert (answer.status, answer.code) == (413, "body_too_large")


def test_a_name_is_taken_once(operator: Api) -> None:
    operator.post("workflows", definition())
    answer = operator.post("workflows", definition())
    assert (answer.status, answer.code) == (409, "workflow_exists")


def test_the_next_version_is_of_the_workflow_in_the_address(operator: Api) -> None:
    answer = operator.post("workflows/flow/versions", definition())
    assert (answer.status, answer.code) == (404, "not_found")
    operator.post("workflows", definition())
    answer = operator.post("workflows/flow/versions", definition("other"))
    assert (answer.status, answer.code, answer.problems) == (
        400,
        "definition_id_mismatch",
        [("$.id", "definition_id_mismatch")],
    )


@pytest.mark.parametrize("path", ["workflows", "workflows/flow/versions"])
def test_a_repeated_request_is_answered_again_and_creates_nothing(operator: Api, path: str) -> None:
    if path != "workflows":
        operator.post("workflows", definition("flow", "first"))
    body = definition(tasks=[{"key": "a", "action": "noop"}])
    first = operator.post(path, body, Idempotency_Key="k1")
    again = operator.post(path, body, Idempotency_Key="k1")
    assert (first.status, again.status) == (201, 201)
    assert first.json == again.json
    other = operator.post(path, definition("flow", "z"), Idempotency_Key="k1")
    assert (other.status, other.code) == (409, "idempotency_conflict")
    assert operator.post(path, body, Idempotency_Key="ü").status == 400
    assert WorkflowVersion.objects.count() == first.json["version"]


@pytest.mark.parametrize("role", ["viewer", "worker-enrolment"])
def test_only_operators_publish(role: str) -> None:
    api = api_as(role)
    for path in ("workflows", "workflows/flow/versions"):
        answer = api.post(path, definition())
        assert (answer.status, answer.code) == (403, "forbidden")


def test_a_worker_enrolment_token_reads_nothing(operator: Api) -> None:
    operator.post("workflows", definition())
    api = api_as("worker-enrolment")
    for path in ("workflows", "workflows/flow", "workflows/flow/versions", "workflows/flow/versions/1"):
        assert api.get(path).status == 403


def test_another_tenants_workflow_is_not_there(operator: Api, stranger: Api) -> None:
    operator.post("workflows", definition())
    for path in ("workflows/flow", "workflows/flow/versions", "workflows/flow/versions/1"):
        answer = stranger.get(path)
        assert (answer.status, answer.code) == (404, "not_found")
    assert stranger.get("workflows").json["items"] == []
    assert stranger.post("workflows/flow/versions", definition()).status == 404
    assert stranger.post("workflows", definition()).status == 201


def test_what_is_not_there(operator: Api) -> None:
    operator.post("workflows", definition())
    for path in ("nothing", "%00", "flow/versions/2", "flow/versions/0", f"flow/versions/{10**30}"):
        answer = operator.get(f"workflows/{path}")
        assert (answer.status, answer.code) == (404, "not_found"), path


def test_workflows_are_listed_by_name_page_by_page(operator: Api) -> None:
    names = [f"flow-{number}" for number in range(5)]
    for name in reversed(names):
        operator.post("workflows", definition(name))
    seen, cursor = [], {}
    while True:
        page = operator.get("workflows", {"limit": 2, **cursor}).json
        seen += [item["workflow_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == names


def test_versions_are_listed_newest_first_page_by_page(operator: Api) -> None:
    operator.post("workflows", definition())
    for number in range(2, 6):
        operator.post("workflows/flow/versions", definition("flow", f"t{number}"))
    first = operator.get("workflows/flow/versions", {"limit": 3}).json
    rest = operator.get("workflows/flow/versions", {"limit": 3, "cursor": first["next_cursor"]}).json
    assert [item["version"] for item in first["items"] + rest["items"]] == [5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None
    operator.post("workflows", definition("other"))
    answer = operator.get("workflows/other/versions", {"cursor": first["next_cursor"]})
    assert (answer.status, answer.code) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"limit": 0}, ("$.limit", "out_of_range")),
        ({"limit": 201}, ("$.limit", "out_of_range")),
        ({"limit": "x"}, ("$.limit", "invalid")),
        ({"limit": ["1", "2"]}, ("$.limit", "repeated")),
        ({"page": 2}, ("$.page", "unknown_field")),
    ],
)
def test_queries_are_read_strictly(operator: Api, query: Any, problem: tuple[str, str]) -> None:
    for path in ("workflows", "runs"):
        answer = operator.get(path, query)
        assert (answer.status, answer.problems) == (400, [problem])


@pytest.mark.parametrize("cursor", ["x", "AAAA", "a" * 9_000, "é"])
def test_a_made_up_cursor_is_refused(operator: Api, cursor: str) -> None:
    for path in ("workflows", "runs"):
        answer = operator.get(path, {"cursor": cursor})
        assert (answer.status, answer.code) == (400, "invalid_cursor")


def test_lists_cost_the_same_however_long_they_are(operator: Api) -> None:
    counts = []
    for number in range(3):
        operator.post("workflows", definition(f"flow-{number}"))
        operator.get("workflows")
        with CaptureQueriesContext(connection) as queries:
            operator.get("workflows")
        counts.append(len(queries))
    assert len(set(counts)) == 1
