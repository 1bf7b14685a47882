"""Bodies: strict JSON, bounded before and while reading, with or without a Content-Length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from platform_site.api.errors import BodyTooLarge, InvalidRequest
from workflows.kernel import canonical

_CHUNK_BYTES = 65_536
_NO_BODY = "This address needs a JSON body."


class ApiRequest(Request):
    """A request whose body may also come in chunks, without a length.

    Django reads exactly Content-Length bytes and so sees nothing of such a body; a server that marks the end
    of its input itself (`wsgi.input_terminated`, as gunicorn does) can be read until that end.
    """

    def _load_stream(self) -> None:
        meta = self._request.META
        if "chunked" not in meta.get("HTTP_TRANSFER_ENCODING", "").lower():
            super()._load_stream()  # type: ignore[misc] # not in the stubs: the framework's hook for this
        elif meta.get("wsgi.input_terminated"):
            self._stream = meta["wsgi.input"]
        else:
            raise InvalidRequest("This server needs a Content-Length for a body.")


class StrictJSONParser(BaseParser):
    """JSON as the kernel reads it: one value, no duplicate keys, no NaN, bounded depth and numbers.

    The view may set `max_body_bytes`, `empty_body` (an empty body means `{}`) and `repair_text` (text that
    cannot be stored is admitted, because it is judged item by item later).
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 the signature is the framework's
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        context = parser_context or {}
        view = context.get("view")
        limit = max_body_bytes(view)
        declared = context["request"].META.get("CONTENT_LENGTH") if "request" in context else None
        if declared and declared.isdecimal() and int(declared) > limit:
            _discard(stream, limit)
            raise _too_large(limit)
        raw = _read(stream, limit)
        if not raw:
            return empty_document(view)
        return canonical.loads(raw, repair_text=bool(getattr(view, "repair_text", False)))


def max_body_bytes(view: object) -> int:
    """What the view accepts: its own `max_body_bytes`, or the setting for all."""
    own: int | None = getattr(view, "max_body_bytes", None)
    return settings.WORKLOAD.body_limit_bytes if own is None else own


def empty_document(view: object) -> dict[str, Any]:
    """What an empty body means: `{}` where the view says so, else InvalidRequest."""
    if getattr(view, "empty_body", False):
        return {}
    raise InvalidRequest(_NO_BODY)


def _read(stream: IO[bytes], limit: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := stream.read(min(_CHUNK_BYTES, limit + 1 - total)):
        parts.append(part)
        total += len(part)
        if total > limit:
            _discard(stream, limit)
            raise _too_large(limit)
    return b"".join(parts)


def _discard(stream: IO[bytes], most: int) -> None:
    """Throw away up to `most` bytes: a client that is still sending would else meet a closed connection and
    never read the 413. Whoever sends still more than that meets it."""
    left = most
    while left > 0 and (part := stream.read(min(_CHUNK_BYTES, left))):
        left -= len(part)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than the {limit} bytes that this address accepts.")
