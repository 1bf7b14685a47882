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
_spelled = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
KINDS = (Ending.SUCCESS.value, Ending.TEMPORARY.value, Ending.PERMANENT.value)
"""How a worker may say that an attempt ended; the other endings are ours to find."""


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


def judge_result(sent: Any) -> CheckedResult:
    """Whatever a worker sent as a result: what is not one at all is a permanent failure too.

    Members that are not known here are left alone, so that a newer worker may send more.
    """
    try:
        problem = _not_a_result(sent)
        if problem is None:
            return check_result(sent)
        return CheckedResult(Ending.PERMANENT, None, "result_invalid", problem, _digest(sent))
    except RecursionError:  # nested as deep as this thread could read it, and no deeper
        problem = "The result is nested too deeply."
        return CheckedResult(Ending.PERMANENT, None, "result_invalid", problem, _digest(problem))


def _not_a_result(sent: Any) -> str | None:
    if not isinstance(sent, Mapping):
        return "The result is not an object."
    if sent.get("kind") not in KINDS:
        return f"The result's kind is not one of {', '.join(KINDS)}."
    for name in ("error_code", "error_message"):
        if not isinstance(sent.get(name), str | None):
            return f"The result's {name} is not text."
    return None


def result_digest(result: Mapping[str, Any]) -> bytes:
    """SHA-256 of the result as sent: equal for a repeat, whatever its spelling on the wire."""
    return _digest({name: result.get(name) for name in ("kind", "output", "error_code", "error_message")})


def _digest(sent: Any) -> bytes:
    return hashlib.sha256(_spelled(sent).encode()).digest()


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
