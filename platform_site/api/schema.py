"""The OpenAPI document: the bearer scheme, the one error body on every operation, pages, common headers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.drainage import set_override
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from pydantic.json_schema import model_json_schema
from rest_framework import serializers

from platform_site.api import idempotency, request_id

IDEMPOTENCY_KEY = OpenApiParameter(
    idempotency.HEADER,
    str,
    OpenApiParameter.HEADER,
    description="1 to 255 visible ASCII characters. The same key with the same request answers the same and "
    "creates once; with another request it is 409.",
)

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "What clients switch on."},
                "message": {"type": "string", "description": "A sentence for people."},
                "details": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["path", "code", "message"],
                        "properties": {
                            "path": {"type": "string", "examples": ["$.tasks[3].key"]},
                            "code": {"type": "string"},
                            "message": {"type": "string"},
                            "line": {"type": "integer"},
                            "column": {"type": "integer"},
                        },
                    },
                },
                "request_id": {"type": "string"},
            },
        }
    },
}

_SENTENCES = {
    "200": "Done.",
    "201": "Made.",
    "202": "Accepted: it is stored, and will be carried out.",
    "400": "The request is not valid; every problem is listed.",
    "401": "A valid token is needed.",
    "403": "This token may not do that.",
    "404": "There is nothing here.",
    "406": "The answer is JSON; the Accept header refuses it.",
    "409": "The state of the resource, or an earlier request with this key, does not allow that.",
    "413": "The body is too large.",
    "415": "The body must be JSON.",
    "500": "Something went wrong here; the request id names it in the log.",
    "503": "Not available for the moment; see Retry-After.",
}
_EXTRA_HEADERS = {"401": "WWW-Authenticate", "503": "Retry-After"}


class ApiSchema(AutoSchema):
    """Adds to every operation the errors it can answer, and the request id to every response."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        responses = operation["responses"]
        for status in self._error_statuses(operation):
            responses.setdefault(status, self._error_response(status))
        for status, response in responses.items():
            response["description"] = response["description"] or _SENTENCES.get(status, "")
            response.setdefault("headers", {})[request_id.HEADER] = {
                "schema": {"type": "string"},
                "description": "Names the request in logs and errors.",
            }
        operation["responses"] = dict(sorted(responses.items()))
        return operation

    def _error_statuses(self, operation: dict[str, Any]) -> list[str]:
        statuses = ["400", "406", "500", "503"]
        # An empty alternative means that the operation can be used without a credential.
        if operation.get("security") and {} not in operation["security"]:
            statuses += ["401", "403"]
        if "{" in self.path:
            statuses.append("404")
        if self.method in ("POST", "PUT", "PATCH", "DELETE"):
            statuses.append("409")
        if "requestBody" in operation:
            statuses += ["413", "415"]
        return statuses

    def _error_response(self, status: str) -> dict[str, Any]:
        component = ResolvedComponent(  # type: ignore[no-untyped-call] # the library's own
            name="Error", type=ResolvedComponent.SCHEMA, schema=ERROR_SCHEMA, object="Error"
        )
        self.registry.register_on_missing(component)
        response: dict[str, Any] = {
            "description": _SENTENCES[status],
            "content": {"application/json": {"schema": component.ref}},
        }
        if status in _EXTRA_HEADERS:
            response["headers"] = {_EXTRA_HEADERS[status]: {"schema": {"type": "string"}}}
        return response


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # the library's own
    target_class = "platform_site.access.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token: `manage.py tokens create NAME --role operator`.",
        }


class UserScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # the library's own
    target_class = "platform_site.access.authentication.UserAuthentication"
    name = "user"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:  # noqa: ARG002
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A person signed in to the console or the admin; writes need the CSRF token.",
        }


class ShapeExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call] # the library's own
    """pydantic models as they are validated: a field with a default may be absent, in answers too.

    Stands before the library's own extension, which describes every field of a model as required.
    """

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    priority = 1

    def get_name(self, auto_schema: AutoSchema, direction: str) -> str:  # noqa: ARG002 the library's signature
        set_override(self.target, "suppress_collision_warning", True)
        name: str = self.target.__name__
        return name.removesuffix("Request")  # the library ends the names of request bodies with it

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:  # noqa: ARG002
        schema = model_json_schema(self.target, ref_template="#/components/schemas/{model}")
        for name, part in schema.pop("$defs", {}).items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call] # the library's own
                name=name, type=ResolvedComponent.SCHEMA, object=name, schema=part
            )
            auto_schema.registry.register_on_missing(component)
        return schema


def page_of(item: type[serializers.BaseSerializer[Any]]) -> serializers.Serializer[Any]:
    """The shape of a page of these items, for `extend_schema(responses=...)`."""
    name = item.__name__.removesuffix("Serializer")
    return inline_serializer(
        name=f"{name}Page",
        fields={
            "items": item(many=True),
            "next_cursor": serializers.CharField(
                allow_null=True, help_text="Leads to what follows; null at the end."
            ),
        },
    )
