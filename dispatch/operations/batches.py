"""Batches over many runs, and the runs that must not hold the others up: those somebody holds, those that fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import DatabaseError

from dispatch.leadership import Fence, LeadershipLost
from dispatch.operations.locking import lock_free_runs, lock_stubborn_run, of_a_lock
from dispatch.operations.skips import Skips

MOST_BATCHES = 10
"""Batches of one call that may find every run of theirs busy."""
MOST_FAILING = 3
"""Failing runs that one call finds and leaves out; with more, something else is wrong."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Look:
    """What one batch looks at: everything, or only the runs ``among``; ``plainly`` waits for them.

    The batch writes down in ``runs`` what it works on, so that a fault can be laid at one run's door.
    """

    among: Sequence[UUID] | None = None
    plainly: bool = False
    runs: list[UUID] = field(default_factory=list)

    def lock(self, duty: str, candidates: Sequence[UUID], skips: Skips) -> dict[UUID, int]:
        """Lock what may be worked on; how many more tasks of each may be queued within its concurrency."""
        locked = lock_stubborn_run(candidates[0]) if self.plainly else lock_free_runs(duty, candidates, skips)
        self.runs = list(locked)
        return locked


Batch = Callable[[Look], int]


def past_the_busy(duty: str, batch: Batch, *, fence: Fence, skips: Skips) -> int:
    """Run ``batch`` until it changes something; how much it changed.

    It looks past the runs it skipped before. When that leaves nothing, one run that was busy in two passes running
    is waited for. A batch that only skipped is not the end of the work.
    """
    for _ in range(MOST_BATCHES):
        skipped = len(skips.left_out(duty))
        changed = past_the_failing(duty, batch, Look(), fence=fence, skips=skips)
        if changed:
            return changed
        if len(skips.left_out(duty)) == skipped:
            break
    stubborn = skips.take_stubborn(duty)
    if stubborn is None:
        return 0
    try:
        return past_the_failing(duty, batch, Look([stubborn], plainly=True), fence=fence, skips=skips)
    except DatabaseError as error:
        if not of_a_lock(error):
            raise
        return 0


def past_the_failing(duty: str, batch: Batch, look: Look, *, fence: Fence, skips: Skips) -> int:
    """Run ``batch``; if it fails, run its halves, down to the run at fault, which is left out. How much changed.

    The beat after a failure tells trouble of the database, on which it raises, from a fault of the runs; and the
    leader is heard of, however long the search takes.
    """
    failing = 0

    def attempt(look: Look) -> int:
        nonlocal failing
        try:
            return batch(look)
        except LeadershipLost:
            raise
        except Exception as error:
            if not look.runs or (isinstance(error, DatabaseError) and of_a_lock(error)):
                raise
            fence.beat()
            if len(look.runs) == 1:
                failing += 1
                if failing > MOST_FAILING:
                    raise
                if skips.fail(duty, look.runs[0]):
                    logger.exception("%s fails for run %s, which is left out.", duty, look.runs[0])
                return 0
        half = len(look.runs) // 2
        return attempt(Look(look.runs[:half])) + attempt(Look(look.runs[half:]))

    return attempt(look)
