"""Waiting for a condition, with a deadline: the only way a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, seconds: float = 10) -> None:
    """Return as soon as the condition holds; AssertionError when the deadline passes first."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.01)
