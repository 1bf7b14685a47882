"""The base of every API view: say who may, parse, make one call, present."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpRequest
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView
from structlog.contextvars import bind_contextvars

from observability.logs import FIELDS
from platform_site.access.permissions import Authenticated, Open
from platform_site.access.principal import Principal, principal_of
from platform_site.api import idempotency
from platform_site.api.errors import Detail, InvalidRequest, NotFound
from platform_site.api.idempotency import Idempotency
from platform_site.api.parsers import ApiRequest, empty_document
from platform_site.api.serializers import QuerySerializer, StrictSerializer

_HANDLERS = ("get", "post", "put", "patch", "delete")


class ApiView(APIView):
    """Subclasses say for each method who may use it; a class that forgets one cannot be defined.

        class Runs(ApiView):
            permissions = {"GET": CanView, "POST": CanOperate}

    `max_body_bytes`, `empty_body` and `repair_text` speak to the parser (see `StrictJSONParser`).
    """

    permissions: ClassVar[Mapping[str, type[BasePermission]]] = {}
    max_body_bytes: ClassVar[int | None] = None
    empty_body: ClassVar[bool] = False
    repair_text: ClassVar[bool] = False
    metadata_class = None  # OPTIONS is not part of the API

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        unsaid = [name for name in _HANDLERS if hasattr(cls, name) and name.upper() not in cls.permissions]
        if unsaid:
            raise TypeError(f"{cls.__name__}.permissions does not say who may: {', '.join(unsaid)}.")

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        return ApiRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let the caller in or not; then put the parts of the address, and the tenant, on log lines."""
        super().initial(request, *args, **kwargs)
        if any("\0" in value for value in kwargs.values() if isinstance(value, str)):
            raise NotFound  # no name holds it, and the database cannot be asked for one that does
        principal = principal_of(request)
        bind_contextvars(
            **{name: str(value) for name, value in kwargs.items() if name in FIELDS},
            **({"tenant": principal.tenant_slug} if principal else {}),
        )

    def get_permissions(self) -> list[Any]:
        """The one of this method. Where the view lacks the method, whoever has a credential gets the 405."""
        method = (self.request.method or "").upper()
        otherwise = Authenticated if self.authentication_classes else Open
        return [self.permissions.get("GET" if method == "HEAD" else method, otherwise)()]

    @property
    def principal(self) -> Principal:
        """Who asks; only where a permission other than Open let the request in."""
        principal = principal_of(self.request)
        if principal is None:
            raise TypeError("This view is open: it has no principal.")
        return principal

    def document(self) -> Any:
        """The body as parsed; `{}` for an empty one where `empty_body` allows that."""
        if self.request.stream is None:
            return empty_document(self)
        return self.request.data

    def parse(self, shape: type[StrictSerializer]) -> dict[str, Any]:
        """The body in this shape; raises with every problem at once."""
        return _validated(shape(data=self.document()))

    def parse_query(self, shape: type[QuerySerializer]) -> dict[str, Any]:
        """The query parameters in this shape."""
        return _validated(shape(data=self.request.query_params))

    def idempotency(self, operation: str, document: Any, *, required: bool = False) -> Idempotency | None:
        """The keyed request this is, from its Idempotency-Key header, its address and its body."""
        key = idempotency.check_key(self.request.headers.get(idempotency.HEADER))
        if key is None:
            if required:
                problem = Detail(
                    "$", "idempotency_key_missing", f"The header {idempotency.HEADER} is missing."
                )
                raise InvalidRequest(problem.message, details=[problem])
            return None
        return Idempotency(
            tenant_id=self.principal.tenant_id,
            principal_id=self.principal.id,
            operation=operation,
            key=key,
            digest=idempotency.request_digest(self.request.path, document),
        )


def _validated(serializer: StrictSerializer) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values
