"""Cursors of this API around the positions that the queries give: each belongs to one list and its filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from platform_site.api.errors import InvalidCursor
from platform_site.api.pagination import Key, Keyset
from workflows.queries import CursorInvalid

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sealed:
    """One list with what narrows it; a cursor of another list, or of other filters, is refused."""

    kind: str
    filters: Mapping[str, Any]
    of: type[int | str] = str

    def open(self, cursor: str | None) -> Any:
        """The position in a cursor; None without one. Raises InvalidCursor."""
        if cursor is None:
            return None
        (position,) = self._keyset.read(cursor, filters=self.filters)
        return position

    def close(self, position: int | str | None) -> str | None:
        """The cursor for a position; None at the end."""
        return None if position is None else self._keyset.write([position], filters=self.filters)

    @property
    def _keyset(self) -> Keyset:
        return Keyset(self.kind, [Key("position", self.of)])


def checked(query: Callable[[], T]) -> T:
    """Run a query; a position that is none of its list is InvalidCursor."""
    try:
        return query()
    except CursorInvalid as error:
        raise InvalidCursor from error
