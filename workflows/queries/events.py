"""What happened to a run, move by move."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workflows.models import StateEvent

MAX_PAGE = 500


@dataclass(frozen=True, slots=True)
class EventRow:
    """One move. `entity` is run, task or attempt; `key` is the task's key, for an attempt `key/number`."""

    seq: int
    at: datetime
    entity: str
    key: str
    from_state: str
    to_state: str
    reason: str
    actor: str

    @property
    def task_key(self) -> str:
        """The task it is about, empty for a move of the run. Keys hold no slash."""
        return "" if self.entity == "run" else self.key.partition("/")[0]

    @property
    def attempt(self) -> str:
        """The number of the attempt, empty for a move of anything else."""
        return self.key.partition("/")[2] if self.entity == "attempt" else ""


@dataclass(frozen=True, slots=True)
class EventPage:
    """`more` says that events follow in the direction of reading."""

    rows: tuple[EventRow, ...]
    more: bool


def run_events(
    *, tenant_id: int, run_id: UUID, after: int | None = None, before: int | None = None, limit: int = 100
) -> EventPage:
    """Events of a run. With `after` the next ones in order, else the latest before `before`, newest first.

    `seq` counts from 1 without a gap, so a reader that remembers its last one misses nothing. One statement.
    """
    limit = max(1, min(limit, MAX_PAGE))
    events = StateEvent.objects.filter(run_id=run_id, run__tenant_id=tenant_id)
    if after is not None:
        events = events.filter(seq__gt=after).order_by("seq")
    elif before is not None:
        events = events.filter(seq__lt=before).order_by("-seq")
    else:
        events = events.order_by("-seq")
    found = [EventRow(*values) for values in events.values_list(*EventRow.__slots__)[: limit + 1]]
    return EventPage(tuple(found[:limit]), len(found) > limit)
