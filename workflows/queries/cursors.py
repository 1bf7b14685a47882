"""Opaque positions in a keyset-ordered list. Pure.

A cursor says which way to read from a row: `older` than it, `newer` than it, or `from` it on (the row
included), which is how a live list refreshes the rows it shows without new ones pushing them down.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Literal

Direction = Literal["older", "newer", "from"]
_DIRECTIONS: tuple[Direction, ...] = ("older", "newer", "from")
_MAX_LENGTH = 512


class CursorInvalid(ValueError):
    """The text is no cursor of this list; a client made it up or changed it."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where to read from: `key` is the ordering key of a row, as texts and numbers."""

    direction: Direction
    key: tuple[str | int, ...]

    def encode(self) -> str:
        raw = json.dumps([self.direction, *self.key], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str, *, shape: tuple[type[str | int], ...]) -> Cursor:
    """The cursor in `text`, whose key must have the types in `shape`. Raises CursorInvalid."""
    if len(text) > _MAX_LENGTH:
        raise CursorInvalid("The cursor is too long.")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        parts = json.loads(raw)
    except (binascii.Error, ValueError) as error:
        raise CursorInvalid("The cursor is not one that this list gave out.") from error
    if not isinstance(parts, list) or not parts or parts[0] not in _DIRECTIONS:
        raise CursorInvalid("The cursor is not one that this list gave out.")
    direction, *key = parts
    if len(key) != len(shape) or any(type(part) is not kind for part, kind in zip(key, shape, strict=True)):
        raise CursorInvalid("The cursor belongs to another list.")
    if not all(map(_can_be_asked_for, key)):
        raise CursorInvalid("The cursor is not one that this list gave out.")
    return Cursor(direction, tuple(key))


def _can_be_asked_for(part: str | int) -> bool:
    """Whether the database can be asked for such a value at all."""
    if isinstance(part, int):
        return abs(part) < 2**63
    return "\0" not in part and not any("\ud800" <= char <= "\udfff" for char in part)
