"""Plain values to the words a person reads: durations, sizes, short ids. Pure; filters stand in front."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR

#: Characters of an id that stay visible. The first twelve hex digits of a time-ordered id are its time, so
#: fewer would show the same text for everything that was made within a minute.
SHORT_ID_LENGTH = 13


def duration(value: timedelta | None) -> str:
    """Two units at most, the smaller one padded: `840ms`, `4.2s`, `12s`, `4m 12s`, `3h 05m`, `2d 04h`.

    A negative span (two clocks that differ a little) reads as `0s`; none reads as an empty text.
    """
    if value is None:
        return ""
    seconds = max(value.total_seconds(), 0.0)
    if seconds < 1:
        return f"{int(seconds * 1000)}ms" if seconds else "0s"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"


def milliseconds(value: int | None) -> str:
    """A number of milliseconds as a duration."""
    return "" if value is None else duration(timedelta(milliseconds=value))


def elapsed(start: datetime | None, end: datetime | None, now: datetime) -> str:
    """How long something took, or has taken until `now`; empty when it has not started."""
    return "" if start is None else duration((end or now) - start)


def utc(value: datetime | None) -> str:
    """Exact to the second, in UTC, for a reader whose browser runs no script and for the hover text."""
    return "" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def machine_time(value: datetime) -> str:
    """What the `datetime` attribute of a `<time>` element takes, to the millisecond."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def short_id(value: object) -> str:
    """The start of an id; the whole of it is one click away (copy) and in the hover text."""
    return str(value)[:SHORT_ID_LENGTH].rstrip("-")


def count(value: int | None) -> str:
    """A number with thousands separated: `1,204`."""
    return "" if value is None else f"{value:,}"


def percent_of(part: int, whole: int) -> float:
    """Share in percent, 0 to 100, two decimals; 0 of 0 is 0."""
    if whole <= 0:
        return 0.0
    return round(100 * min(max(part, 0), whole) / whole, 2)


def size(octets: int | None) -> str:
    """`812 B`, `14.2 KB`, `1.5 MB`; a KB is 1,000 bytes."""
    if octets is None:
        return ""
    if octets < 1000:
        return f"{octets} B"
    if octets < 1_000_000:
        return f"{octets / 1000:.1f} KB"
    return f"{octets / 1_000_000:.1f} MB"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 task`, `2 tasks`, `1,204 tasks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def pretty_json(text: str | None) -> str:
    """Stored JSON laid out for reading; text that is not whole JSON (cut off, for one) stays as it is."""
    if not text:
        return ""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        # Also an integer beyond the interpreter's limit of digits for int(): shown as stored.
        return text
