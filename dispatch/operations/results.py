"""Results as workers send them, checked one by one before any SQL. Pure.

A result under a valid lease is always settled: an output that is too large or cannot be stored becomes a
permanent failure that says so, and error texts are cleaned and cut. So no request loses an attempt.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workflows.kernel.canonical import storable
from workflows.kernel.errors import JsonInvalid
from workflows.ledger.settle import Ending

MAX_OUTPUT_BYTES = 64 * 1024
MAX_ERROR_CODE_BYTES = 128
MAX_ERROR_MESSAGE_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """A result that can be stored, and the digest of what was sent."""

    ending: Ending
    output: str | None
    error_code: str
    error_message: str
    digest: bytes


def check_result(result: Mapping[str, Any]) -> CheckedResult:
    """``result`` has a known ``kind``; the rest is judged here and never refused."""
    digest = result_digest(result)
    ending = Ending(result["kind"])
    if ending is not Ending.SUCCESS:
        return CheckedResult(
            ending=ending,
            output=None,
            error_code=clean(str(result.get("error_code") or "unspecified"), MAX_ERROR_CODE_BYTES),
            error_message=clean(str(result.get("error_message") or ""), MAX_ERROR_MESSAGE_BYTES),
            digest=digest,
        )
    try:
        output = storable(result.get("output"), max_bytes=MAX_OUTPUT_BYTES)
    except JsonInvalid as problem:
        code = "result_too_large" if problem.code == "too_large" else "result_invalid"
        where = f" at {problem.path}" if problem.path else ""
        message = clean(f"The output cannot be stored{where}: {problem.message}", MAX_ERROR_MESSAGE_BYTES)
        return CheckedResult(Ending.PERMANENT, None, code, message, digest)
    return CheckedResult(Ending.SUCCESS, output, "", "", digest)


def result_digest(result: Mapping[str, Any]) -> bytes:
    """SHA-256 of the result as sent: equal for a repeat, whatever its spelling on the wire."""
    fields = {name: result.get(name) for name in ("kind", "output", "error_code", "error_message")}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).digest()


def clean(text: str, max_bytes: int) -> str:
    """Text that PostgreSQL can store: control characters and lone surrogates replaced, cut at a character."""
    kept = "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for char in text[: max_bytes + 1]
    )
    encoded = kept.encode()
    if len(encoded) <= max_bytes:
        return kept
    return encoded[: max_bytes - 3].decode(errors="ignore") + "\N{HORIZONTAL ELLIPSIS}"
