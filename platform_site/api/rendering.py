"""Answers as JSON, built from plain values: exact integers, one spelling of times, stored JSON as it is.

Whatever is stored as canonical JSON (definitions, params, outputs) is put into the answer as it is: reading
and writing it again would cost time and could only change it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value that is JSON text already."""

    text: str


def _plain(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not a value of an answer.")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def json_answer(
    body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """An answer with this object as its body; its own members, not those below, may be `JsonText`."""
    if any(isinstance(value, JsonText) for value in body.values()):
        members = (f"{_encode(name)}:{_member(value)}" for name, value in body.items())
        text = f"{{{','.join(members)}}}"
    else:
        text = _encode(body)
    return HttpResponse(text.encode(), content_type="application/json", status=status, headers=headers)


def _member(value: Any) -> str:
    return value.text if isinstance(value, JsonText) else _encode(value)
