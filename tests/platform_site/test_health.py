from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client

from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant

pytestmark = pytest.mark.urls("tests.platform_site.furniture")


@pytest.fixture
def lost_database(tmp_path: Any) -> Iterator[Any]:
    """While it lasts, new connections go to a socket that nobody listens on; returns what ends the outage."""
    settings = connections["default"].settings_dict
    found = {name: settings[name] for name in ("HOST", "PORT")}
    connection.close()
    settings.update(HOST=str(tmp_path), PORT="1")

    def back() -> None:
        settings.update(found)

    yield back
    back()


@pytest.mark.django_db
def test_live_asks_nobody() -> None:
    response = Client().get("/health/live")
    assert response.status_code == 200
    assert response.json() == {"status": "live"}


@pytest.mark.django_db
def test_ready_with_a_database_that_has_every_migration() -> None:
    response = Client().get("/health/ready")
    assert response.json() == {"status": "ready", "checks": {"database": "ok", "migrations": "ok"}}
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]


@pytest.mark.django_db(transaction=True)
def test_not_ready_while_a_migration_is_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name, applied FROM django_migrations WHERE app = 'access' LIMIT 1")
        row = cursor.fetchone()
        cursor.execute("DELETE FROM django_migrations WHERE app = %s AND name = %s", row[:2])
        try:
            response = Client().get("/health/ready")
        finally:
            cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)", row)
    assert response.status_code == 503
    assert response.json()["checks"] == {"database": "ok", "migrations": "1 not applied"}
    assert Client().get("/health/ready").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_lost_database_is_503_and_comes_back_without_a_restart(lost_database: Any) -> None:
    client = Client(raise_request_exception=False)
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json() == {
        "status": "not_ready",
        "checks": {"database": "unreachable", "migrations": "unknown"},
    }
    assert ready["Retry-After"] == "1"
    assert client.get("/health/live").status_code == 200

    headers = {"authorization": "Bearer wl_0123456789_nobody"}
    response = client.get("/api/v1/viewers", headers=headers)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "unavailable"
    assert response["Retry-After"] == "1"
    page = client.get("/page/operational")
    assert page.status_code == 503

    lost_database()
    assert client.get("/health/ready").status_code == 200
    assert client.get("/api/v1/viewers", headers=headers).status_code == 401
    plain = create_token(tenant=default_tenant(), name="t", role=Role.VIEWER).plain
    assert client.get("/api/v1/viewers", headers={"authorization": f"Bearer {plain}"}).status_code == 200


@pytest.mark.django_db
def test_probes_may_name_any_host() -> None:
    for path in ("/health/live", "/health/ready"):
        assert Client(SERVER_NAME="10.1.2.3").get(path).status_code == 200
    assert Client(SERVER_NAME="10.1.2.3").get("/metrics").status_code == 400


def test_probes_take_no_other_method() -> None:
    assert Client().post("/health/live").status_code == 405
