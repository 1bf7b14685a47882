"""Formatting is pure: what a value reads like, at the edges too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from platform_site.console import formatting

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0s"),
        (0, "0s"),
        (0.0004, "0ms"),
        (0.84, "840ms"),
        (1, "1.0s"),
        (9.94, "9.9s"),
        (9.96, "9s"),
        (12.9, "12s"),
        (59.999, "59s"),
        (60, "1m 00s"),
        (252, "4m 12s"),
        (3599, "59m 59s"),
        (3600, "1h 00m"),
        (11_100, "3h 05m"),
        (86_400, "1d 00h"),
        (187_200, "2d 04h"),
    ],
)
def test_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    assert formatting.duration(timedelta(seconds=seconds)) == words


def test_elapsed_ends_at_the_end_or_now_and_is_empty_before_the_start() -> None:
    later = NOON + timedelta(seconds=30)
    assert formatting.elapsed(NOON, later, later + timedelta(hours=1)) == "30s"
    assert formatting.elapsed(NOON, None, later) == "30s"
    assert formatting.elapsed(None, None, later) == ""


def test_times_are_told_in_utc_whatever_their_zone() -> None:
    moment = datetime(2026, 3, 1, 14, 0, 5, 250_000, tzinfo=timezone(timedelta(hours=2)))
    assert formatting.utc(moment) == "2026-03-01 12:00:05 UTC"
    assert formatting.machine_time(moment) == "2026-03-01T12:00:05.250Z"


def test_short_ids_keep_the_time_part() -> None:
    assert formatting.short_id(UUID("0198f31c-77a2-7abc-8def-000000000000")) == "0198f31c-77a2"
    assert formatting.short_id("9f2c41d7" * 8) == "9f2c41d79f2c4"
    assert formatting.short_id("abc") == "abc"


@pytest.mark.parametrize(
    ("octets", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (14_240, "14.2 KB"), (1_500_000, "1.5 MB")],
)
def test_sizes(octets: int, words: str) -> None:
    assert formatting.size(octets) == words


def test_counts_and_plurals_separate_thousands() -> None:
    assert formatting.count(1204) == "1,204"
    assert formatting.count(None) == ""
    assert formatting.plural(1, "task") == "1 task"
    assert formatting.plural(1204, "task") == "1,204 tasks"
    assert formatting.plural(2, "run waits", "runs wait") == "2 runs wait"


@pytest.mark.parametrize(
    ("part", "whole", "share"), [(0, 0, 0.0), (1, 3, 33.33), (5, 4, 100.0), (-1, 4, 0.0)]
)
def test_shares_stay_within_a_hundred(part: int, whole: int, share: float) -> None:
    assert formatting.percent_of(part, whole) == share


def test_json_is_laid_out_and_what_is_none_stays() -> None:
    assert formatting.pretty_json('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert formatting.pretty_json('{"a":[1') == '{"a":[1'
    long_number = "9" * 5000
    assert formatting.pretty_json(long_number) == long_number
    assert formatting.pretty_json(None) == ""
