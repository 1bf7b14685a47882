"""Every address of the API: who may, what it answers to nonsense, and what the description says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from platform_site.access.roles import Role
from tests.support.http import PREFIX, PROTOCOL, Api, WorkerApi, api_as
from tests.support.openapi import Operation, operation_of, operations, violations

pytestmark = [pytest.mark.contract, pytest.mark.django_db]

UUID = "00000000-0000-7000-8000-000000000007"
PARTS = {"uuid": UUID, "int": "1", "str": "name"}


def routes() -> Iterator[tuple[str, str, str]]:
    """Method, address with parts filled in, and route template of every view below /api/v1."""
    for route, view in _views(get_resolver().url_patterns, ""):
        if not route.startswith("api/v1/"):
            continue
        address = re.sub(r"<(\w+):\w+>", lambda part: PARTS[part[1]], route).removeprefix("api/v1/")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            if hasattr(view, method.lower()):
                yield method, address, route


def _views(patterns: list[Any], above: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        route = above + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and hasattr(pattern.callback, "cls"):
            yield route, pattern.callback.cls


ROUTES = sorted(routes())
OPERATIONS = list(operations())
of_every_route = pytest.mark.parametrize(("method", "address", "route"), ROUTES)
of_every_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=[operation.name for operation in OPERATIONS]
)


def test_there_is_a_surface() -> None:
    assert len(ROUTES) >= 25


@of_every_route
def test_without_a_credential_the_answer_is_401_with_a_challenge(
    method: str, address: str, route: str
) -> None:
    for headers in (PROTOCOL, {**PROTOCOL, "Authorization": "Bearer wl_made_up"}):
        answer = Api(None, headers).send(method, address)
        assert answer.status == 401, answer
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@of_every_route
@pytest.mark.parametrize("role", list(Role))
def test_every_role_is_let_in_where_it_may_and_nowhere_else(
    method: str, address: str, route: str, role: Role
) -> None:
    api = api_as(role)
    api.headers = PROTOCOL
    answer = api.send(method, address)
    if address == "workers/register":
        may = role == Role.WORKER_ENROLMENT
    elif re.match(r"workers/[^/]+/.", address):
        assert answer.status == 401, answer  # an API token is no session
        return
    else:
        may = role in (
            (Role.OPERATOR, Role.ADMIN) if method == "POST" else (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
        )
    assert (answer.status != 403) == may, answer
    assert answer.status != 401, answer


@of_every_route
def test_a_worker_session_opens_no_address_of_people(method: str, address: str, route: str) -> None:
    worker = WorkerApi()
    answer = worker.api.send(method, address)
    assert answer.status == 401, answer  # also on the addresses of another worker


@of_every_route
def test_an_unknown_method_is_answered_in_the_one_form(method: str, address: str, route: str) -> None:
    operator = api_as("admin")
    answer = operator.send("PATCH", address)
    assert answer.status in (401, 405), answer
    assert set(answer.json["error"]) == {"code", "message", "details", "request_id"}


@of_every_route
def test_every_route_is_described(method: str, address: str, route: str) -> None:
    assert operation_of(method, PREFIX + address) is not None


def test_nothing_is_described_that_is_not_there() -> None:
    described = {(operation.method, re.sub(r"\{[^}]+\}", "{}", operation.path)) for operation in OPERATIONS}
    there = {(method, "/" + re.sub(r"<[^>]+>", "{}", route)) for method, _, route in ROUTES}
    assert described == there


def test_the_description_is_valid_and_generates_without_a_warning() -> None:
    with GENERATOR_STATS.silence():
        validate_schema(SchemaGenerator().get_schema(request=None, public=True))
        assert not GENERATOR_STATS._warn_cache
        assert not GENERATOR_STATS._error_cache


@of_every_operation
def test_every_operation_is_explained(operation: Operation) -> None:
    described = operation.described
    assert described["summary"]
    assert described["tags"]
    assert described["security"]
    assert {"400", "401", "403", "500", "503"} <= described["responses"].keys()
    for response in described["responses"].values():
        assert response["description"]
        assert response["content"]["application/json"]["schema"]


@of_every_operation
def test_examples_are_what_they_are_examples_of(operation: Operation) -> None:
    parts = [
        response["content"]["application/json"] for response in operation.described["responses"].values()
    ]
    body = operation.described.get("requestBody")
    if body:
        sent = body["content"]["application/json"]
        assert sent["schema"]["$ref"].endswith("EmptyRequest") or sent.get("examples"), "no example of a body"
        parts.append(sent)
    for part in parts:
        for example in part.get("examples", {}).values():
            assert violations(part["schema"], example["value"]) == []


def test_query_parameters_are_strict_everywhere() -> None:
    viewer = api_as("viewer")
    for method, address, _ in ROUTES:
        if method == "GET":
            answer = viewer.get(address, {"surprise": 1})
            assert (answer.status, answer.problems) == (400, [("$.surprise", "unknown_field")]), address
