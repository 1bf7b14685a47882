"""The OpenAPI document of a small site: what the furniture adds to every operation."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.validation import validate_schema
from rest_framework.request import Request
from rest_framework.response import Response

from platform_site.access.permissions import CanOperate, CanView, Open
from platform_site.api.schema import IDEMPOTENCY_KEY, page_of
from platform_site.api.serializers import PageQuery, StrictCharField, StrictSerializer
from platform_site.api.views import ApiView


class Thing(StrictSerializer):
    name = StrictCharField(max_length=5)


class Things(ApiView):
    permissions = {"GET": CanView, "POST": CanOperate}

    @extend_schema(operation_id="list_things", parameters=[PageQuery], responses=page_of(Thing))
    def get(self, request: Request) -> Response:
        return Response({})

    @extend_schema(
        operation_id="make_thing", parameters=[IDEMPOTENCY_KEY], request=Thing, responses={201: Thing}
    )
    def post(self, request: Request) -> Response:
        return Response({})


class Public(ApiView):
    authentication_classes = []
    permissions = {"GET": Open}

    @extend_schema(operation_id="public_thing", responses=Thing)
    def get(self, request: Request, name: str) -> Response:
        return Response({"name": name})


PATTERNS = [path("api/v1/things", Things.as_view()), path("api/v1/public/<str:name>", Public.as_view())]


@pytest.fixture
def document() -> dict[str, Any]:
    with GENERATOR_STATS.silence():
        found: dict[str, Any] = SchemaGenerator(patterns=PATTERNS).get_schema(request=None, public=True)
    return found


def test_it_is_valid_and_generates_without_a_warning(document: dict[str, Any]) -> None:
    validate_schema(document)
    assert not GENERATOR_STATS, GENERATOR_STATS._warn_cache
    assert document["openapi"].startswith("3.1")


def test_every_operation_names_its_errors(document: dict[str, Any]) -> None:
    things, public = document["paths"]["/api/v1/things"], document["paths"]["/api/v1/public/{name}"]
    assert list(things["get"]["responses"]) == ["200", "400", "401", "403", "406", "500", "503"]
    assert list(things["post"]["responses"]) == [
        "201", "400", "401", "403", "406", "409", "413", "415", "500", "503",
    ]  # fmt: skip
    assert list(public["get"]["responses"]) == ["200", "400", "404", "406", "500", "503"]
    for operation in (things["get"], things["post"], public["get"]):
        for status, response in operation["responses"].items():
            assert "X-Request-ID" in response["headers"]
            if status >= "400":
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}
    assert "Retry-After" in things["get"]["responses"]["503"]["headers"]


def test_credentials_are_declared(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert schemes["token"]["scheme"] == "bearer"
    assert {"token": []} in document["paths"]["/api/v1/things"]["get"]["security"]
    assert "Idempotency-Key" in str(document["paths"]["/api/v1/things"]["post"]["parameters"])


def test_a_page_has_items_and_a_cursor(document: dict[str, Any]) -> None:
    page = document["components"]["schemas"]["ThingPage"]
    assert set(page["properties"]) == {"items", "next_cursor"}
