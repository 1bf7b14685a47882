"""Runs that a coordinator pass found locked and left out, so that one busy run holds nobody up.

A run skipped in two passes running is waited for, alone, so that it cannot be passed over for ever: one of them a
call, and only when nothing else is left to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID


class Skips:
    """Remembers, per duty, what this pass and the one before it skipped."""

    def __init__(self) -> None:
        self._this: dict[str, set[UUID]] = {}
        self._before: dict[str, set[UUID]] = {}
        self._waited_for: dict[str, UUID] = {}

    def begin_pass(self) -> None:
        self._before, self._this = self._this, {}

    def add(self, duty: str, run_ids: Iterable[UUID]) -> None:
        self._this.setdefault(duty, set()).update(run_ids)

    def left_out(self, duty: str) -> list[UUID]:
        """What this duty does not look at again in this pass."""
        return sorted(self._this.get(duty, ()))

    def take_stubborn(self, duty: str) -> UUID | None:
        """One run that was skipped in this pass and the one before; each is given out once, and all take turns."""
        both = self._this.get(duty, set()) & self._before.get(duty, set())
        if not both:
            return None
        last = self._waited_for.get(duty)
        run_id = min((one for one in both if last is None or one > last), default=min(both))
        self._waited_for[duty] = run_id
        self._before[duty].discard(run_id)
        return run_id
