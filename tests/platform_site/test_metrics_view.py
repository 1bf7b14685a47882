from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant

pytestmark = [pytest.mark.urls("tests.platform_site.furniture"), pytest.mark.django_db]


@pytest.fixture
def private(settings: Any) -> None:
    settings.WORKLOAD = dataclasses.replace(settings.WORKLOAD, metrics_public=False)


def test_on_one_machine_anybody_may_scrape_whatever_they_accept() -> None:
    accept = "application/openmetrics-text;version=1.0.0"
    response = Client().get("/metrics", headers={"accept": accept})
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(response.content.decode())}
    assert {"workload_operation_duration_seconds", "workload_coordinator_up"} <= names
    assert any(name.startswith("django_http_") for name in names)


@pytest.mark.parametrize(("role", "status"), [(None, 401), (Role.VIEWER, 200), (Role.WORKER_ENROLMENT, 403)])
def test_else_it_takes_a_viewer(private: None, role: Role | None, status: int) -> None:
    headers = {}
    if role is not None:
        plain = create_token(tenant=default_tenant(), name="t", role=role).plain
        headers = {"authorization": f"Bearer {plain}"}
    assert Client().get("/metrics", headers=headers).status_code == status
