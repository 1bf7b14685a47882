"""How the time is handed in: decisions take `now` as an argument, and their callers hold a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Something that knows the time; always aware, always UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own clock. Never used to decide who owns a lease: that is the database's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when it is told to, and never backwards."""

    def __init__(self, now: datetime) -> None:
        if now.tzinfo is None:
            raise ValueError("A clock needs an aware time.")
        self._now = now.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move on and return the new time; a negative step is refused with `ValueError`."""
        if by < timedelta(0):
            raise ValueError("A clock does not run backwards.")
        self._now += by
        return self._now
