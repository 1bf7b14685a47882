"""The API description as a judge: every answer that a test gets must be one that it describes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_URI = "urn:api"


@dataclass(frozen=True)
class Operation:
    """One operation of the description."""

    path: str
    method: str
    described: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.described["operationId"])


@functools.cache
def description() -> dict[str, Any]:
    """The description as generated, with objects closed: an undescribed field of an answer is an error here."""
    with GENERATOR_STATS.silence():
        found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    for part in found["components"]["schemas"].values():
        if part.get("properties"):
            part.setdefault("additionalProperties", False)
    return found


def operations() -> Iterator[Operation]:
    """Every operation."""
    for path, methods in description()["paths"].items():
        for method, described in methods.items():
            yield Operation(path, method.upper(), described)


@functools.cache
def _matchers() -> list[tuple[re.Pattern[str], Operation]]:
    return [
        (re.compile(re.sub(r"\{[^}]+\}", "[^/]+", operation.path)), operation) for operation in operations()
    ]


def operation_of(method: str, path: str) -> Operation | None:
    """The operation of a request; None for an address or method that the description does not have."""
    fitting = [
        operation
        for pattern, operation in _matchers()
        if operation.method == method and pattern.fullmatch(path)
    ]
    return min(fitting, key=lambda operation: operation.path.count("{"), default=None)


@functools.cache
def _registry() -> Registry[Any]:
    resource = Resource(contents=description(), specification=DRAFT202012)
    return Registry().with_resource(_URI, resource)


def violations(schema: Mapping[str, Any], value: Any) -> list[str]:
    """How a value breaks a schema of the description."""
    absolute = _absolute(schema)
    validator = Draft202012Validator(absolute, registry=_registry(), format_checker=FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def _absolute(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            name: f"{_URI}{part}" if name == "$ref" and part.startswith("#") else _absolute(part)
            for name, part in schema.items()
        }
    return [_absolute(part) for part in schema] if isinstance(schema, list) else schema


def check_answer(method: str, path: str, status: int, body: Any) -> None:
    """Fail unless the description has this answer to this request."""
    operation = operation_of(method, path)
    if operation is None:
        assert status in (401, 403, 404, 405), f"{method} {path} is not described, and answered {status}"
        return
    responses = operation.described["responses"]
    assert str(status) in responses, f"{operation.name} does not describe {status}: {body}"
    schema = responses[str(status)]["content"]["application/json"]["schema"]
    assert violations(schema, body) == [], f"{operation.name} {status}"
