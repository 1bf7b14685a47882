from __future__ import annotations

import re

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from structlog.contextvars import bind_contextvars, bound_contextvars, get_contextvars

from platform_site.api.request_id import RequestIdMiddleware

pytestmark = pytest.mark.urls("tests.platform_site.furniture")


@pytest.mark.parametrize("asked", ["a", "req-1_2.3", "A" * 64])
def test_a_plain_id_of_the_client_is_kept(asked: str) -> None:
    assert Client().get("/health/live", headers={"X-Request-ID": asked})["X-Request-ID"] == asked


@pytest.mark.parametrize("asked", ["", "A" * 65, "a b", "a\u00e9", "a/b", "<script>", "a\n"])
def test_anything_else_is_replaced(asked: str) -> None:
    given = Client().get("/health/live", headers={"X-Request-ID": asked})["X-Request-ID"]
    assert re.fullmatch(r"req_[0-9a-f]{16}", given)


def test_the_parts_of_an_address_that_are_log_fields_stand_on_its_lines() -> None:
    bound = Client().get("/api/v1/named/r1/hunter2", headers={"X-Request-ID": "q"}).json()
    assert bound == {"request_id": "q", "run_id": "r1"}


def test_a_name_that_no_database_can_hold_is_not_found() -> None:
    assert Client().get("/api/v1/named/%00/x").status_code == 404


def test_the_log_context_of_one_request_does_not_reach_the_next() -> None:
    seen: list[dict[str, object]] = []

    def view(_request: HttpRequest) -> HttpResponse:
        seen.append(dict(get_contextvars()))
        bind_contextvars(run_id="left behind")
        return HttpResponse()

    middleware = RequestIdMiddleware(view)
    with bound_contextvars(epoch=3):
        middleware(RequestFactory().get("/", headers={"X-Request-ID": "one"}))
        middleware(RequestFactory().get("/", headers={"X-Request-ID": "two"}))
        assert get_contextvars() == {"epoch": 3}
    assert seen == [{"request_id": "one"}, {"request_id": "two"}]
