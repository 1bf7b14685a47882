from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory

from platform_site.access.permissions import Open
from platform_site.api.views import ApiView
from tests.platform_site.furniture import Document, Optional

pytestmark = pytest.mark.urls("tests.platform_site.furniture")

JSON = "application/json"
DIGITS = "9" * 1_000


def post(path: str, body: str | bytes, client: Client | None = None) -> Any:
    return (client or Client(raise_request_exception=False)).post(path, body, content_type=JSON)


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "  ",
        "{} {}",
        "NaN",
        "[1, Infinity]",
        '{"a": 1, "a": 1}',
        '"\\u0000"',
        '{"\\ud800": 1}',
        b'"\xff"',
        "[" * 200 + "]" * 200,
        "1" * 1_001,
        "\ufeff{}",
    ],
)
def test_anything_but_strict_json_is_400(body: str | bytes) -> None:
    response = post("/api/v1/document", body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] in ("invalid_json", "invalid_request")


def test_integers_pass_exactly_up_to_a_thousand_digits() -> None:
    response = post("/api/v1/document", DIGITS)
    assert response.content.decode() == DIGITS


def test_an_empty_body_means_nothing_only_where_the_view_says_so() -> None:
    assert post("/api/v1/optional", "").json() == {}
    refused = post("/api/v1/document", "")
    assert refused.status_code == 400
    assert "JSON body" in refused.json()["error"]["message"]


def test_text_is_repaired_only_where_the_view_says_so() -> None:
    assert post("/api/v1/repaired", '{"a": "\\u0000"}').status_code == 200
    assert post("/api/v1/document", '{"a": "\\u0000"}').status_code == 400


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"name": 1, "count": 1}, "name"),
        ({"name": "a", "count": "1"}, "count"),
        ({"name": "a", "count": True}, "count"),
        ({"name": "a", "count": 1.0}, "count"),
        ({"name": "a", "count": 1, "flag": "true"}, "flag"),
        ({"name": "a", "count": 1, "flag": 1}, "flag"),
        ({"name": "a", "count": 1, "id": 5}, "id"),
        ({"name": "a", "count": 1, "id": "hunter2-do-not-show"}, "id"),
        ({"name": "a", "count": 1, "kind": "hunter2-do-not-show"}, "kind"),
        ({"name": "a", "count": 1, "kind": ["a"]}, "kind"),
        ({"name": None, "count": 1}, "name"),
        ({"name": "too long", "count": 1}, "name"),
        ({"name": "a", "count": 0}, "count"),
        ({"count": 1}, "name"),
    ],
)
def test_nothing_is_turned_into_something_else(body: Any, wrong: str) -> None:
    response = post("/api/v1/echo", json.dumps(body))
    assert response.status_code == 400
    assert [detail["path"] for detail in response.json()["error"]["details"]] == [f"$.{wrong}"]
    assert "hunter2" not in response.content.decode()


def test_a_shape_keeps_values_as_they_are() -> None:
    body = {"name": " a ", "count": 3, "flag": False, "any": [1, {"b": None}]}
    assert post("/api/v1/echo", json.dumps(body)).json() == body


@pytest.mark.parametrize("body", ["[]", "1", "null", '"text"'])
def test_another_kind_of_value_is_not_an_object(body: str) -> None:
    error = post("/api/v1/echo", body).json()["error"]
    assert [detail["path"] for detail in error["details"]] == ["$"]
    assert error["details"][0]["code"] == ("null" if body == "null" else "not_an_object")


def chunked(body: bytes, *, terminated: bool = True) -> WSGIRequest:
    """A request as gunicorn hands it over: no length, and an input that ends by itself."""
    request: Any = RequestFactory().post("/", content_type=JSON)
    environ = {
        **request.environ,
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input_terminated": terminated,
        "wsgi.input": io.BytesIO(body),
    }
    environ.pop("CONTENT_LENGTH", None)
    return WSGIRequest(environ)


def test_a_body_in_chunks_is_read_to_its_end() -> None:
    response = Document.as_view()(chunked(b'{"a": [1, 2]}'))
    assert response.status_code == 200
    assert response.data == {"a": [1, 2]}


def test_a_body_in_chunks_is_cut_off_at_the_limit() -> None:
    request = chunked(b" " * 10_000_000)
    response = Document.as_view()(request)
    assert response.status_code == 413
    assert request.environ["wsgi.input"].tell() <= 400_001, "as much again is thrown away, and no more"


def test_an_empty_body_in_chunks_is_empty() -> None:
    assert Optional.as_view()(chunked(b"")).data == {}
    assert Document.as_view()(chunked(b"")).status_code == 400


def test_a_server_that_cannot_end_its_input_asks_for_a_length() -> None:
    assert Document.as_view()(chunked(b"{}", terminated=False)).status_code == 400


def test_a_declared_length_over_the_limit_is_enough_to_refuse() -> None:
    request: Any = RequestFactory().post("/", "{}", content_type=JSON)
    request.META["CONTENT_LENGTH"] = "200001"
    response = Document.as_view()(request)
    assert response.status_code == 413


def test_queries_are_strict_too() -> None:
    client = Client()
    assert client.get("/api/v1/echo").json() == {"limit": 50, "cursor": None}
    assert client.get("/api/v1/echo?limit=200&cursor=abc").json() == {"limit": 200, "cursor": "abc"}
    for query in (
        "limit=0",
        "limit=201",
        "limit=1_0",
        "limit=x",
        "limit=%EF%BC%91",
        "nope=1",
        "limit=1&limit=2",
    ):
        response = client.get(f"/api/v1/echo?{query}")
        assert response.status_code == 400, query
        (detail,) = response.json()["error"]["details"]
        assert detail["path"] == f"$.{query.partition('=')[0]}"


def test_a_view_that_does_not_say_who_may_use_it_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="post"):
        type("Forgetful", (ApiView,), {"permissions": {"GET": Open}, "post": lambda *_: None})
