"""Runs that a coordinator pass left out, so that one run holds nobody up: it was locked, or it failed.

A run that was locked in two passes running is waited for, alone, so that it cannot be passed over for ever: one of
them a call, and only when nothing else is left to do. A run that failed is left out for this pass, and for twice as
many passes each time it fails again.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

LONGEST_ABSENCE = 64
"""Passes that a failing run is left out at most."""


class Skips:
    """Remembers, per duty, what this pass and the one before it skipped, and what failed lately."""

    def __init__(self) -> None:
        self._this: dict[str, set[UUID]] = {}
        self._before: dict[str, set[UUID]] = {}
        self._waited_for: dict[str, UUID] = {}
        self._pass = 0
        self._failed: dict[str, dict[UUID, tuple[int, int]]] = {}  # (passes left out, until before this one)

    def begin_pass(self) -> None:
        self._before, self._this = self._this, {}
        self._pass += 1
        for failed in self._failed.values():
            for run_id in [one for one, (_, until) in failed.items() if until + LONGEST_ABSENCE < self._pass]:
                del failed[run_id]

    def add(self, duty: str, run_ids: Iterable[UUID]) -> None:
        self._this.setdefault(duty, set()).update(run_ids)

    def fail(self, duty: str, run_id: UUID) -> bool:
        """Leave a run out that failed; whether it had not failed before."""
        failed = self._failed.setdefault(duty, {})
        before = failed.get(run_id)
        absence = min(2 * before[0], LONGEST_ABSENCE) if before else 1
        failed[run_id] = (absence, self._pass + absence)
        return before is None

    def left_out(self, duty: str) -> list[UUID]:
        """What this duty does not look at again in this pass."""
        failed = self._failed.get(duty, {})
        out = {run_id for run_id, (_, until) in failed.items() if self._pass < until}
        return sorted(out | self._this.get(duty, set()))

    def was_busy(self, duty: str) -> set[UUID]:
        """What the pass before this one found locked."""
        return self._before.get(duty, set())

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
