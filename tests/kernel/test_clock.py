"""Clocks are aware, in UTC, and never run backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from workflows.kernel.clock import ManualClock, SystemClock

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_the_system_clock_is_aware_and_in_utc() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(NOON)
    assert clock.now() == clock.now() == NOON
    assert clock.advance(timedelta(seconds=5)) == clock.now() == NOON + timedelta(seconds=5)


def test_a_manual_clock_speaks_utc() -> None:
    clock = ManualClock(NOON.astimezone(timezone(timedelta(hours=9))))
    assert clock.now().tzinfo is UTC


def test_a_manual_clock_refuses_naive_times_and_steps_back() -> None:
    with pytest.raises(ValueError, match="aware"):
        ManualClock(datetime(2026, 1, 2))  # noqa: DTZ001 naive on purpose
    with pytest.raises(ValueError, match="backwards"):
        ManualClock(NOON).advance(timedelta(microseconds=-1))
