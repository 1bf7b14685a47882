"""How long until a loop's next step is worth taking. What every ``run_once`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Pause:
    """Seconds, never negative; 0 means at once. The shorter of two is ``min(a, b)``."""

    seconds: float

    def __post_init__(self) -> None:
        if self.seconds < 0:
            raise ValueError(f"A pause cannot be negative: {self.seconds}.")

    @classmethod
    def none(cls) -> Pause:
        """There is more to do: call again at once."""
        return cls(0.0)

    @classmethod
    def after(cls, seconds: float) -> Pause:
        """Call again in so many seconds; a moment that has passed means at once."""
        return cls(max(0.0, seconds))

    @classmethod
    def until(cls, moment: datetime, *, now: datetime) -> Pause:
        """Call again at ``moment``, both by the same clock."""
        return cls.after((moment - now).total_seconds())
