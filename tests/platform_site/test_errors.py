"""The one error body, asserted for every producer.

    {"error": {"code": str, "message": str, "details": [{"path", "code", "message"}], "request_id": str}}

`request_id` equals the X-Request-ID header. Nothing of what was raised or sent shows in it.
"""

from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from platform_site.api import errors
from platform_site.api.errors import Detail, DomainError, envelope
from tests.platform_site.furniture import SECRET

pytestmark = pytest.mark.urls("tests.platform_site.furniture")


@pytest.fixture
def http() -> Client:
    return Client(raise_request_exception=False)


def assert_error(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"].startswith("application/json")
    body: dict[str, Any] = response.json()
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert list(error) == ["code", "message", "details", "request_id"]
    assert error["code"] == code
    assert error["message"]
    assert "\n" not in error["message"]
    for detail in error["details"]:
        assert detail.keys() >= {"path", "code", "message"}
        assert detail["path"].startswith("$")
    assert error["request_id"] == response["X-Request-ID"]
    assert SECRET not in response.content.decode()
    return error


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        ("domain", 409, "lease_lost"),
        ("foreign", 409, "worker_draining"),
        ("conflict", 409, "conflict"),
        ("definition", 400, "definition_invalid"),
        ("params", 400, "params_invalid"),
        ("pydantic", 400, "invalid_request"),
        ("http404", 404, "not_found"),
        ("denied", 403, "forbidden"),
        ("bad", 400, "invalid_request"),
        ("suspicious", 400, "invalid_request"),
        ("too_big", 413, "body_too_large"),
        ("throttled", 429, "rate_limited"),
        ("drf_parse", 400, "invalid_json"),
        ("drf_error", 500, "internal_error"),
        ("operational", 503, "unavailable"),
        ("interface", 503, "unavailable"),
        ("psycopg", 503, "unavailable"),
        ("pool", 503, "unavailable"),
        ("unavailable", 503, "unavailable"),
        ("bug", 500, "internal_error"),
    ],
)
def test_whatever_a_view_raises_becomes_the_one_body(http: Client, what: str, status: int, code: str) -> None:
    assert_error(http.get(f"/api/v1/raise/{what}"), status, code)


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        ("http404", 404, "not_found"),
        ("denied", 403, "forbidden"),
        ("bad", 400, "invalid_request"),
        ("too_big", 413, "body_too_large"),
        ("operational", 503, "unavailable"),
        ("bug", 500, "internal_error"),
    ],
)
def test_so_does_what_a_plain_view_raises(http: Client, what: str, status: int, code: str) -> None:
    assert_error(http.get(f"/api/plain/{what}"), status, code)


def test_unknown_addresses_below_api_are_404_in_json(http: Client) -> None:
    assert_error(http.get("/api/v1/no/such/thing"), 404, "not_found")
    assert_error(http.get("/api"), 404, "not_found")


@pytest.mark.parametrize(("what", "status"), [("http404", 404), ("bug", 500), ("operational", 503)])
def test_pages_stay_html(http: Client, what: str, status: int) -> None:
    response = http.get(f"/page/{what}")
    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")
    assert SECRET not in response.content.decode()
    assert response.has_header("Retry-After") == (status == 503)


def test_a_missing_credential_is_401_with_a_challenge(http: Client) -> None:
    response = http.get("/api/v1/viewers")
    assert_error(response, 401, "unauthorized")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_wrong_method_is_405_and_says_which_are_right(http: Client) -> None:
    for response in (http.put("/api/v1/raise/bug"), http.options("/api/v1/raise/bug")):
        assert_error(response, 405, "method_not_allowed")
        assert "GET" in response["Allow"]
    assert_error(http.put("/api/v1/viewers"), 401, "unauthorized")


def test_an_accept_header_that_refuses_json_is_406(http: Client) -> None:
    assert_error(http.get("/api/v1/echo", headers={"accept": "text/html"}), 406, "not_acceptable")


def test_another_media_type_is_415(http: Client) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = http.post("/api/v1/echo", data="a=1", content_type=media_type)
        assert_error(response, 415, "unsupported_media_type")


def test_an_oversized_body_is_413(http: Client) -> None:
    body = '"' + "x" * 200_000 + '"'
    error = assert_error(
        http.post("/api/v1/document", body, content_type="application/json"), 413, "body_too_large"
    )
    assert "200000" in error["message"]


def test_broken_json_names_line_and_column(http: Client) -> None:
    response = http.post("/api/v1/document", '{\n  "a": 1,\n  "a": 2\n}', content_type="application/json")
    error = assert_error(response, 400, "invalid_json")
    assert "line 3" in error["message"]
    (detail,) = error["details"]
    assert (detail["code"], detail["line"]) == ("duplicate_key", 3)
    assert detail["column"] >= 1


def test_every_problem_of_a_shape_is_listed_with_its_path(http: Client) -> None:
    body = {
        "items": [{"name": "fine", "count": 1}, {"name": 7, "count": "1", "extra": SECRET}],
        "words": ["a", 3],
        "odd name": 1,
    }
    error = assert_error(
        http.post("/api/v1/nested", body, content_type="application/json"), 400, "invalid_request"
    )
    found = {(detail["path"], detail["code"]) for detail in error["details"]}
    assert found == {
        ("$.items[1].name", "invalid"),
        ("$.items[1].count", "invalid"),
        ("$.items[1].extra", "unknown_field"),
        ("$.words[1]", "invalid"),
        ('$["odd name"]', "unknown_field"),
    }


def test_kernel_problems_keep_their_paths(http: Client) -> None:
    error = assert_error(http.get("/api/v1/raise/definition"), 400, "definition_invalid")
    assert error["details"] == [{"path": "$.tasks[1].key", "code": "duplicate", "message": "Twice."}] * 2


def test_errors_shaped_like_ours_keep_message_and_details(http: Client) -> None:
    error = assert_error(http.get("/api/v1/raise/foreign"), 409, "worker_draining")
    assert error["message"] == "The worker drains."
    assert error["details"] == [{"path": "$.slots", "code": "draining", "message": "No slots."}]


@pytest.mark.parametrize(("what", "after"), [("operational", "1"), ("unavailable", "9"), ("throttled", "7")])
def test_later_says_when(http: Client, what: str, after: str) -> None:
    assert http.get(f"/api/v1/raise/{what}")["Retry-After"] == after


def test_a_500_is_logged_with_its_traceback_and_a_4xx_is_not(
    http: Client, caplog: pytest.LogCaptureFixture
) -> None:
    http.get("/api/v1/raise/conflict")
    http.get("/api/v1/raise/bug")
    (record,) = [record for record in caplog.records if record.name == "platform_site.api.handler"]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0] is RuntimeError


def test_many_details_are_cut_and_counted() -> None:
    error = errors.InvalidRequest(details=[Detail("$", "bad", "Bad.")] * 250)
    details = envelope(error, request_id="r")["error"]["details"]
    assert len(details) == 201
    assert details[-1]["code"] == "more"
    assert "50" in details[-1]["message"]


def _tree(root: type[DomainError]) -> list[type[DomainError]]:
    found = []
    for below in root.__subclasses__():
        if below.__module__ == errors.__name__:
            found += [below, *_tree(below)]
    return found


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^ +[-.] (\w+)(?: +(\d{3}) (\w+))?", inspect.getdoc(errors) or "", re.MULTILINE)
    actual = _tree(DomainError)
    assert [name for name, _, _ in drawn] == [cls.__name__ for cls in actual]
    for (_, status, code), cls in zip(drawn, actual, strict=True):
        if status:
            assert (int(status), code) == (cls.status, cls.code)


def test_the_documented_codes_are_those_of_the_tree() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| (\d{3}) \|", page, re.MULTILINE))
    for cls in _tree(DomainError):
        if cls is not errors.ApiError:
            assert documented.get(cls.code) == str(cls.status), cls
            assert cls.default_message().endswith(".") or "<token>" in cls.default_message()
