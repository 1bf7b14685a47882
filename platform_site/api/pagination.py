"""Pages by key, never by offset, with cursors that belong to one list and its filters.

A `Keyset` names a list and the columns it is ordered by; the last column must be unique. The cursor is the
values of these columns in the last row shown, as unpadded base64url of a small JSON object, with a digest of
the filters. Cursors are not secret and not trusted: a changed or foreign one is `invalid_cursor`.

    RUNS = Keyset("runs", [Key("created_at", datetime, descending=True), Key("id", UUID, descending=True)])
    page = RUNS.page(queryset, limit=50, cursor=None, filters={"state": "failed"})
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet, Value
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan

from platform_site.api.errors import InvalidCursor

VERSION = 1
MAX_CURSOR_BYTES = 4_096
_MAX_CURSOR_CHARS = MAX_CURSOR_BYTES * 4 // 3 + 4

T = TypeVar("T")
U = TypeVar("U")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of a list. `next_cursor` leads to what follows; None at the end. Pages are not one snapshot."""

    items: tuple[T, ...]
    next_cursor: str | None

    def map(self, present: Callable[[T], U]) -> Page[U]:
        return Page(items=tuple(map(present, self.items)), next_cursor=self.next_cursor)

    def as_json(self) -> dict[str, Any]:
        return {"items": list(self.items), "next_cursor": self.next_cursor}


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the order: its name, its type (int, str, datetime or UUID), its direction."""

    name: str
    type: type[int | str | datetime | UUID]
    descending: bool = False

    def write(self, value: Any) -> int | str:
        if isinstance(value, datetime):
            return value.isoformat()
        return value if isinstance(value, int) else str(value)

    def read(self, raw: Any) -> Any:
        """The value again; ValueError if it cannot be one of this column."""
        if self.type is int:
            if isinstance(raw, bool) or not isinstance(raw, int) or abs(raw) >= 2**63:
                raise ValueError("not an integer")
            return raw
        if not isinstance(raw, str) or "\0" in raw:
            raise ValueError("not text")
        raw.encode()  # a lone surrogate would fail later, in the database driver
        if self.type is datetime:
            moment = datetime.fromisoformat(raw)
            if moment.tzinfo is None:
                raise ValueError("not a moment")
            return moment
        return UUID(raw) if self.type is UUID else raw


@dataclass(frozen=True)
class Keyset:
    """A list and its order."""

    kind: str
    keys: Sequence[Key]

    def ordering(self) -> list[str]:
        return [f"-{key.name}" if key.descending else key.name for key in self.keys]

    def page(
        self,
        queryset: QuerySet[M, T],
        *,
        limit: int,
        cursor: str | None,
        filters: Mapping[str, Any] | None = None,
    ) -> Page[T]:
        """One page of a queryset (of models, or of `values()` with the key columns); one statement.

        `filters` is whatever narrowed the queryset, scope and tenant included. Raises InvalidCursor.
        """
        if cursor is not None:
            queryset = queryset.filter(self._after(self.read(cursor, filters=filters)))
        rows = list(queryset.order_by(*self.ordering())[: limit + 1])
        return self.cut(rows, limit=limit, filters=filters)

    def cut(self, rows: Iterable[T], *, limit: int, filters: Mapping[str, Any] | None = None) -> Page[T]:
        """A page of rows that were read with `limit + 1`: the surplus row says that there is more."""
        found = tuple(rows)
        if len(found) <= limit:
            return Page(items=found, next_cursor=None)
        shown = found[:limit]
        values = [_value(shown[-1], key.name) for key in self.keys]
        return Page(items=shown, next_cursor=self.write(values, filters=filters))

    def write(self, values: Sequence[Any], *, filters: Mapping[str, Any] | None = None) -> str:
        """The cursor that stands behind a row with these key values."""
        document = {
            "v": VERSION,
            "k": self.kind,
            "f": _filter_digest(filters),
            "a": [key.write(value) for key, value in zip(self.keys, values, strict=True)],
        }
        raw = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    def read(self, cursor: str, *, filters: Mapping[str, Any] | None = None) -> list[Any]:
        """The key values of a cursor of this list with these filters; anything else is InvalidCursor."""
        try:
            position = _decode(cursor, kind=self.kind, filters=filters)
            return [key.read(value) for key, value in zip(self.keys, position, strict=True)]
        except (ValueError, TypeError, RecursionError) as wrong:
            raise InvalidCursor from wrong

    def _after(self, values: Sequence[Any]) -> Any:
        """Rows behind these values; where all columns go one way, a row comparison, which an index serves."""
        directions = {key.descending for key in self.keys}
        if len(directions) == 1:
            comparison = TupleLessThan if self.keys[0].descending else TupleGreaterThan
            return comparison(Tuple(*(F(key.name) for key in self.keys)), tuple(values))
        return self._after_mixed(values)

    def _after_mixed(self, values: Sequence[Any]) -> Q:
        behind = Q()
        equal = Q()
        for key, value in zip(self.keys, values, strict=True):
            side = "lt" if key.descending else "gt"
            behind |= equal & Q(**{f"{key.name}__{side}": Value(value)})
            equal &= Q(**{key.name: Value(value)})
        return behind


def _decode(cursor: str, *, kind: str, filters: Mapping[str, Any] | None) -> list[Any]:
    if len(cursor) > _MAX_CURSOR_CHARS:
        raise ValueError("too long")
    padded = cursor + "=" * (-len(cursor) % 4)
    document = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    if not isinstance(document, dict) or document.keys() != {"v", "k", "f", "a"}:
        raise ValueError("not a cursor")
    if (document["v"], document["k"], document["f"]) != (VERSION, kind, _filter_digest(filters)):
        raise ValueError("a cursor of another list")
    position: list[Any] = document["a"]
    return position


def _value(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def _filter_digest(filters: Mapping[str, Any] | None) -> str:
    """What a cursor is bound to; absent filters and filters of None are the same."""
    set_ones = {name: value for name, value in (filters or {}).items() if value is not None}
    text = json.dumps(set_ones, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
