from __future__ import annotations

import logging

import pytest
from django.test import Client

pytestmark = pytest.mark.urls("tests.platform_site.furniture")


def line(caplog: pytest.LogCaptureFixture, method: str, path: str) -> logging.LogRecord:
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="observability.access"):
        Client(raise_request_exception=False).generic(method, path)
    (record,) = [record for record in caplog.records if record.name == "observability.access"]
    return record


def test_a_request_is_one_line_with_the_route_and_without_the_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = line(caplog, "GET", "/api/v1/raise/conflict?secret=hunter2")
    fields = vars(record)
    assert (fields["method"], fields["route"], fields["status"]) == ("GET", "/api/v1/raise/<str:what>", 409)
    assert fields["error_code"] == "conflict"
    assert fields["duration_ms"] >= 0
    assert "hunter2" not in str(fields)


def test_an_unknown_address_is_unmatched(caplog: pytest.LogCaptureFixture) -> None:
    assert vars(line(caplog, "GET", "/no/such/hunter2"))["route"] == "unmatched"


@pytest.mark.parametrize(
    ("path", "logger"), [("/api/v1/raise/bug", "platform_site.api.handler"), ("/page/bug", "django.request")]
)
def test_a_fault_has_one_traceback(caplog: pytest.LogCaptureFixture, path: str, logger: str) -> None:
    Client(raise_request_exception=False).get(path)
    assert [record.name for record in caplog.records if record.levelno >= logging.ERROR] == [logger]


def test_a_probe_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert Client().get("/health/live").status_code == 200
    assert not [record for record in caplog.records if record.name == "observability.access"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/metrics", logging.DEBUG),
        ("/api/v1/echo", logging.INFO),
        ("/api/v1/raise/conflict", logging.INFO),
        ("/api/v1/raise/bug", logging.WARNING),
        ("/api/v1/raise/unavailable", logging.WARNING),
    ],
)
def test_how_loud_it_is(caplog: pytest.LogCaptureFixture, path: str, level: int) -> None:
    assert line(caplog, "GET", path).levelno == level
