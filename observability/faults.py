"""Failures on order, for tests: a plan is handed in through a constructor and strikes at named places.

Production code takes a plan as an argument and calls `plan.strike("claim")` at the edge it guards.
`NO_FAULTS` is what it gets everywhere else: no setting, variable or address can turn a fault on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PLACES = frozenset(
    {
        "database",
        "register",
        "claim",
        "heartbeat",
        "complete",
        "release",
        "drain",
        "coordinator_lock",
        "coordinator_pass",
        "worker_execute",
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Wait `delay_seconds`, then raise `error` if there is one; this many `times` running."""

    delay_seconds: float = 0.0
    error: Exception | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if self.delay_seconds < 0 or self.times < 1:
            raise ValueError("A fault has a delay of 0 or more and strikes at least once.")


class FaultPlan:
    """Ordered faults per place; each strike takes the next. Safe to strike from several threads."""

    def __init__(self, faults: Mapping[str, Sequence[Fault]] | None = None) -> None:
        unknown = sorted((faults or {}).keys() - PLACES)
        if unknown:
            raise ValueError(f"Not places where faults strike: {', '.join(unknown)}.")
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._left = {
            place: deque(fault for fault in ordered for _ in range(fault.times))
            for place, ordered in (faults or {}).items()
        }

    def strike(self, place: str, *, cancelled: threading.Event | None = None) -> None:
        """Do what the plan has next for this place: nothing, mostly. A delay ends when `cancelled` is set."""
        if place not in PLACES:
            raise ValueError(f"{place!r} is not a place where faults strike.")
        with self._lock:
            waiting = self._left.get(place)
            fault = waiting.popleft() if waiting and not self._ended.is_set() else None
        if fault is None:
            return
        if fault.delay_seconds:
            (cancelled or self._ended).wait(fault.delay_seconds)
        if fault.error is not None:
            raise fault.error

    def left(self, place: str) -> int:
        """How many strikes the plan still has for this place."""
        with self._lock:
            return len(self._left.get(place, ()))

    def close(self) -> None:
        """End delays that wait and drop what is left."""
        self._ended.set()
        with self._lock:
            self._left.clear()


NO_FAULTS = FaultPlan()
