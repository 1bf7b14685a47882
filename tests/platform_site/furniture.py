"""A small site that raises everything the furniture must answer; used as a URLconf by tests."""

from __future__ import annotations

from typing import Any

import psycopg
import psycopg_pool
import pydantic
from django.contrib import admin
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response
from structlog.contextvars import get_contextvars

from platform_site import health
from platform_site.access.permissions import Authenticated, CanEnrol, CanOperate, CanView, Open
from platform_site.api import errors, serializers
from platform_site.api.errors import Detail, DomainError
from platform_site.api.views import ApiView
from platform_site.metrics_view import MetricsView
from workflows.kernel.errors import DefinitionInvalid, ParamsInvalid, Problem

SECRET = "hunter2-do-not-show"


class LeaseGone(DomainError):
    """The lease is not valid any more."""

    code = "lease_lost"
    status = 409


class ShapedLikeOurs(Exception):
    code = "worker_draining"
    status = 409
    message = "The worker drains."
    details = (Problem("$.slots", "draining", "No slots."),)


class Model(pydantic.BaseModel):
    number: int


def _pydantic() -> None:
    Model.model_validate({"number": SECRET})


RAISED: dict[str, Any] = {
    "domain": lambda: LeaseGone(details=[Detail("$.lease", "expired", "It expired.")]),
    "foreign": ShapedLikeOurs,
    "conflict": lambda: errors.Conflict("Taken."),
    "definition": lambda: DefinitionInvalid([Problem("$.tasks[1].key", "duplicate", "Twice.")] * 2),
    "params": lambda: ParamsInvalid([Problem("$.n", "type", "Not a number.")]),
    "http404": lambda: Http404(SECRET),
    "denied": lambda: PermissionDenied(SECRET),
    "bad": lambda: BadRequest(SECRET),
    "suspicious": lambda: SuspiciousOperation(SECRET),
    "too_big": lambda: RequestDataTooBig(SECRET),
    "throttled": lambda: drf.Throttled(wait=7),
    "drf_parse": lambda: drf.ParseError(SECRET),
    "drf_error": lambda: drf.APIException(SECRET),
    "operational": lambda: OperationalError(SECRET),
    "interface": lambda: InterfaceError(SECRET),
    "psycopg": lambda: psycopg.OperationalError(SECRET),
    "pool": lambda: psycopg_pool.PoolTimeout(SECRET),
    "unavailable": lambda: errors.Unavailable(retry_after=9),
    "bug": lambda: RuntimeError(SECRET),
}


class Raise(ApiView):
    authentication_classes = []
    permissions = {"GET": Open}

    def get(self, request: Request, what: str) -> Response:
        if what == "pydantic":
            _pydantic()
        error: Exception = RAISED[what]()
        raise error


class Shape(serializers.StrictSerializer):
    name = serializers.StrictCharField(max_length=5)
    count = serializers.StrictIntegerField(min_value=1)
    flag = serializers.StrictBooleanField(required=False)
    id = serializers.StrictUUIDField(required=False)
    kind = serializers.StrictChoiceField(choices=["a", "b"], required=False)
    any = serializers.JsonValueField(required=False, allow_null=True)


class Nested(serializers.StrictSerializer):
    items = Shape(many=True)
    words = serializers.serializers.ListField(child=serializers.StrictCharField(), required=False)


class Echo(ApiView):
    authentication_classes = []
    permissions = {"GET": Open, "POST": Open}
    shape = Shape

    def get(self, request: Request) -> Response:
        return Response(self.parse_query(serializers.PageQuery))

    def post(self, request: Request) -> Response:
        return Response(self.parse(self.shape))


class EchoNested(Echo):
    shape = Nested


class Document(ApiView):
    authentication_classes = []
    permissions = {"POST": Open}
    max_body_bytes = 200_000

    def post(self, request: Request) -> Response:
        return Response(self.document())


class Optional(Document):
    empty_body = True


class Repaired(Document):
    repair_text = True

    def post(self, request: Request) -> Response:
        return Response(repr(self.document()))


class Viewers(ApiView):
    permissions = {"GET": CanView, "POST": CanOperate}

    def get(self, request: Request) -> Response:
        return Response({"name": self.principal.name, "role": self.principal.role, "id": self.principal.id})

    post = get


class Enrolment(ApiView):
    permissions = {"POST": CanEnrol}
    empty_body = True

    def post(self, request: Request) -> Response:
        return Response({"tenant": self.principal.tenant_slug})


class Named(ApiView):
    authentication_classes = []
    permissions = {"GET": Open}

    def get(self, request: Request, run_id: str, other: str) -> Response:
        return Response(get_contextvars())


class Keyed(ApiView):
    permissions = {"POST": Authenticated}

    def post(self, request: Request) -> Response:
        keyed = self.idempotency("test", self.document(), required=True)
        return Response({"digest": keyed.digest.hex() if keyed else None})


def plain(request: HttpRequest, what: str) -> HttpResponse:
    error: Exception = RAISED[what]()
    raise error


urlpatterns = [
    path("api/v1/raise/<str:what>", Raise.as_view()),
    path("api/v1/echo", Echo.as_view()),
    path("api/v1/nested", EchoNested.as_view()),
    path("api/v1/document", Document.as_view()),
    path("api/v1/optional", Optional.as_view()),
    path("api/v1/repaired", Repaired.as_view()),
    path("api/v1/viewers", Viewers.as_view()),
    path("api/v1/enrolment", Enrolment.as_view()),
    path("api/v1/named/<str:run_id>/<str:other>", Named.as_view()),
    path("api/v1/keyed", Keyed.as_view()),
    path("api/plain/<str:what>", plain),
    path("page/<str:what>", plain),
    path("health/live", health.live),
    path("health/ready", health.ready),
    path("metrics", MetricsView.as_view()),
    path("admin/", admin.site.urls),
]
handler400 = "platform_site.api.handler.bad_request"
handler403 = "platform_site.api.handler.permission_denied"
handler404 = "platform_site.api.handler.page_not_found"
handler500 = "platform_site.api.handler.server_error"
