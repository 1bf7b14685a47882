from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from platform_site.pause import Pause


def test_the_shorter_pause_is_the_smaller():
    assert min(Pause(2), Pause.none(), Pause(1)) == Pause(0)


def test_a_moment_that_has_passed_means_at_once():
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert Pause.until(now + timedelta(seconds=3), now=now) == Pause(3)
    assert Pause.until(now - timedelta(seconds=3), now=now) == Pause.none()


def test_a_negative_pause_is_refused():
    with pytest.raises(ValueError, match="negative"):
        Pause(-1)
