"""Time the call of an operation from an interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from observability.metrics import Timing, timed
from platform_site.api.handler import describe


@contextmanager
def measured(operation: str) -> Iterator[Timing]:
    """Count the block under this name: what the caller got wrong (4xx) counts as refused, not as error."""
    refusal: Exception | None = None
    with timed(operation) as timing:
        try:
            yield timing
        except Exception as raised:
            if describe(raised).status >= 500:
                raise
            timing.outcome = "refused"
            refusal = raised
    if refusal is not None:
        raise refusal
