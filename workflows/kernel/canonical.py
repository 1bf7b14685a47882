"""Strict JSON in, canonical JSON out.

Everything that is stored, hashed or compared goes through here: one spelling per value (sorted keys, no
spaces, UTF-8, integers exact to the last digit), and nothing that PostgreSQL or another JSON reader could
not hold: no U+0000, no lone surrogates, no NaN or infinities, no bottomless nesting.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from workflows.kernel.errors import JsonInvalid
from workflows.kernel.json_text import Token, json_path, locate, scan

__all__ = [
    "MAX_DEPTH",
    "MAX_INTEGER_DIGITS",
    "Fault",
    "JsonInvalid",
    "JsonValue",
    "digest",
    "dumps",
    "encode",
    "find_faults",
    "loads",
    "storable",
]

MAX_DEPTH = 100
"""Nested arrays and objects; a scalar has depth 0, `[]` has depth 1."""

MAX_INTEGER_DIGITS = 1_000
_INTEGER_BOUND = 10**MAX_INTEGER_DIGITS
_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")

_MESSAGES = {
    "too_deep": "Arrays and objects are nested too deeply.",
    "duplicate_key": "The same key is used twice in one object.",
    "invalid_number": "NaN, infinities and numbers beyond the range of a double are not JSON.",
    "integer_too_long": f"Integers may have at most {MAX_INTEGER_DIGITS:,} digits.",
    "invalid_text": "Text may contain neither U+0000 nor a surrogate without its partner.",
    "not_json": "Only null, booleans, numbers, text, arrays and objects with text keys are JSON values.",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One part of a value that cannot be stored: its place, and why."""

    parts: tuple[str | int, ...]
    code: str

    @property
    def path(self) -> str:
        return json_path(self.parts)

    @property
    def message(self) -> str:
        return _MESSAGES[self.code]


# --- reading -------------------------------------------------------------------------------------


class _Refused(Exception):
    """Raised inside the decoder, which does not say where it stands; the place is found afterwards."""

    def __init__(self, code: str) -> None:
        self.code = code


def _strict_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("duplicate_key")
    return found


def _strict_integer(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS and len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _Refused("integer_too_long")
    return int(text)


def _strict_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Refused("invalid_number")
    return number


def _strict_constant(_text: str) -> float:
    raise _Refused("invalid_number")


def _repaired_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        found.update({name: math.nan for name in found if names.count(name) > 1})
    return found


def _repaired_integer(text: str) -> int | float:
    return math.inf if len(text.lstrip("-")) > MAX_INTEGER_DIGITS else int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_strict_object,
    parse_int=_strict_integer,
    parse_float=_strict_float,
    parse_constant=_strict_constant,
)
_REPAIRING = json.JSONDecoder(
    object_pairs_hook=_repaired_object,
    parse_int=_repaired_integer,
    strict=False,
)


def loads(raw: bytes | str, *, max_depth: int = MAX_DEPTH, repair_text: bool = False) -> JsonValue:
    """Read exactly one JSON value; raises `JsonInvalid` with line, column and path.

    With `repair_text` only what is no JSON at all is refused. U+0000, lone surrogates and NaN come through
    as they are, an integer that is too long as infinity, the value of a repeated key as NaN, and depth is
    not judged: each of them is refused by `storable` later, for the one item that holds it, so that one bad
    item of a batch never spoils the others.
    """
    text = _decode(raw, repair_text=repair_text)
    try:
        value: JsonValue = (_REPAIRING if repair_text else _STRICT).decode(text)
    except json.JSONDecodeError as error:
        message = f"Not valid JSON at line {error.lineno}, column {error.colno}: {_plain(error.msg)}."
        raise JsonInvalid("invalid_json", message, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise _located(text, "too_deep", max_depth) from None
    except _Refused as refused:
        raise _located(text, refused.code, max_depth) from None
    if not repair_text:
        fault = next(find_faults(value, max_depth=max_depth), None)
        if fault is not None:
            raise _located(text, fault.code, max_depth)
    return value


def _decode(raw: bytes | str, *, repair_text: bool) -> str:
    if isinstance(raw, str):
        text = raw
    else:
        try:
            text = raw.decode("utf-8", "surrogatepass" if repair_text else "strict")
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode("utf-8", "replace")
            line, column = locate(before, len(before))
            message = f"The text is not UTF-8 at line {line}, column {column}."
            raise JsonInvalid("invalid_utf8", message, line=line, column=column) from None
    if text.startswith("\ufeff"):
        raise JsonInvalid("invalid_json", "The text starts with a byte order mark.", line=1, column=1)
    return text


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:].removesuffix(" at")


def _located(text: str, code: str, max_depth: int) -> JsonInvalid:
    """The error for the first token of the text that is wrong in this way."""
    for token in scan(text):
        if _is_wrong(token, code, max_depth):
            line, column = locate(text, token.offset)
            path = json_path(token.parts)
            message = f"{_MESSAGES[code]} (line {line}, column {column})"
            return JsonInvalid(code, message, line=line, column=column, path=path)
    return JsonInvalid(code, _MESSAGES[code])


def _is_wrong(token: Token, code: str, max_depth: int) -> bool:
    if code == "too_deep":
        return token.depth > max_depth
    if code == "duplicate_key":
        return token.repeated
    if code == "invalid_text":
        return token.text.startswith('"') and bool(_BAD_TEXT.search(json.loads(token.text)))
    if code == "integer_too_long":
        digits = token.text.lstrip("-")
        return digits.isdigit() and len(digits) > MAX_INTEGER_DIGITS
    return _is_unbounded(token.text)


def _is_unbounded(text: str) -> bool:
    if text in {"NaN", "Infinity", "-Infinity"}:
        return True
    return text[0] in "-0123456789" and not text.lstrip("-").isdigit() and math.isinf(float(text))


# --- judging -------------------------------------------------------------------------------------

_Link = tuple[Any, "str | int"]
_SMALL = 2**63


def find_faults(value: object, *, max_depth: int = MAX_DEPTH) -> Iterator[Fault]:
    """Every part of a value that cannot be stored. Iterative, so that no nesting can exhaust the stack."""
    kind = type(value)
    if kind is not dict and kind is not list:
        code = _scalar_fault(value)
        if code is not None:
            yield Fault((), code)
        return
    stack: list[tuple[Any, _Link | None, int]] = [(value, None, 1)]
    sound_names: set[str] = set()  # the same few names come again in every object
    while stack:
        node, link, depth = stack.pop()
        if depth > max_depth:
            yield Fault(_parts(link), "too_deep")
            continue
        if type(node) is dict and not node.keys() <= sound_names:
            yield from _name_faults(node, link, sound_names)
        for key, item in node.items() if type(node) is dict else enumerate(node):
            kind = type(item)
            if kind is dict or kind is list:
                stack.append((item, (link, key), depth + 1))
            elif kind is str and item.isascii() and "\x00" not in item:
                continue  # most of them: spares a call
            elif code := _scalar_fault(item):
                yield Fault((*_parts(link), key), code)


def _name_faults(node: dict[Any, Any], link: _Link | None, sound_names: set[str]) -> Iterator[Fault]:
    for name in node:
        if type(name) is not str:
            yield Fault((*_parts(link), f"<{type(name).__name__}>"), "not_json")
        elif _scalar_fault(name):
            yield Fault((*_parts(link), name), "invalid_text")
        else:
            sound_names.add(name)


def _scalar_fault(value: Any) -> str | None:
    kind = type(value)
    if kind is str:
        if (value.isascii() and "\x00" not in value) or not _BAD_TEXT.search(value):
            return None
        return "invalid_text"
    if kind is int:
        return None if -_SMALL < value < _SMALL or abs(value) < _INTEGER_BOUND else "integer_too_long"
    if kind is float:
        return None if math.isfinite(value) else "invalid_number"
    return None if value is None or kind is bool else "not_json"


def _parts(link: _Link | None) -> tuple[str | int, ...]:
    found: list[str | int] = []
    while link is not None:
        link, key = link
        found.append(key)
    return tuple(reversed(found))


# --- writing -------------------------------------------------------------------------------------

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
encode = _ENCODER.encode
"""Canonical text of a value that is known to be sound (it came from `loads` or passed `find_faults`)."""


def dumps(value: object, *, max_depth: int = MAX_DEPTH) -> str:
    """Canonical text; equal values give equal text, whatever the order of their keys.

    Raises `JsonInvalid` with the path of the first part that JSON, as it is stored here, cannot hold.
    """
    fault = next(find_faults(value, max_depth=max_depth), None)
    if fault is not None:
        raise JsonInvalid(fault.code, fault.message, path=fault.path)
    return encode(value)


def digest(text: str) -> bytes:
    """SHA-256 of the text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


def storable(value: object, *, max_bytes: int, max_depth: int = MAX_DEPTH) -> str:
    """Canonical text of at most `max_bytes` bytes of UTF-8; raises `JsonInvalid` (`too_large`)."""
    text = dumps(value, max_depth=max_depth)
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        raise JsonInvalid(
            "too_large", f"The value takes {size:,} bytes; {max_bytes:,} are allowed.", path="$"
        )
    return text
