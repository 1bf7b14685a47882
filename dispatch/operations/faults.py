"""Runs at whose door a failed claim was laid: this process leaves them out for a while, so that others are served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Lock
from uuid import UUID

from cachetools import TTLCache

LEFT_OUT_SECONDS = 30.0
REMEMBERED = 1_000

logger = logging.getLogger(__name__)


class Faults:
    """The runs that failed lately. May be used by every thread."""

    def __init__(
        self, *, seconds: float = LEFT_OUT_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lock = Lock()
        self._failed: TTLCache[UUID, None] = TTLCache(maxsize=REMEMBERED, ttl=seconds, timer=clock)

    def note(self, run_id: UUID, error: Exception) -> None:
        """Leave the run out from now on, and say so."""
        with self._lock:
            self._failed[run_id] = None
        logger.error(
            "A claim fails for run %s, which is left out for a while.",
            run_id,
            exc_info=(type(error), error, error.__traceback__),
        )

    def without(self, run_ids: Sequence[UUID]) -> list[UUID]:
        """Those of the runs that did not fail lately."""
        with self._lock:
            return [run_id for run_id in run_ids if run_id not in self._failed]
