"""Every state of every object has a look, and no look is left over."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from dispatch.states import DispatchState, WorkerState
from platform_site.console.badges import BADGES, GLYPHS, OUTLINES, badge_for
from platform_site.console.templatetags.console import bar_segments, meter, moment, state_badge
from workflows.kernel.states import AttemptState, RunState, TaskState

ENUMS: dict[str, type[StrEnum]] = {
    "run": RunState,
    "task": TaskState,
    "attempt": AttemptState,
    "dispatch": DispatchState,
    "worker": WorkerState,
}


@pytest.mark.parametrize("kind", sorted(ENUMS))
def test_the_table_and_the_enum_have_the_same_states(kind: str) -> None:
    assert set(BADGES[kind]) == {state.value for state in ENUMS[kind]}


def test_no_kind_is_left_out() -> None:
    assert set(BADGES) == set(ENUMS)


@pytest.mark.parametrize("kind", sorted(ENUMS))
def test_states_of_a_kind_are_told_apart_without_colour(kind: str) -> None:
    words = [badge.word for badge in BADGES[kind].values()]
    assert len(set(words)) == len(words)


def test_every_shape_has_an_outline_and_a_glyph() -> None:
    assert set(OUTLINES) == set(GLYPHS)
    for outline in OUTLINES.values():
        ET.fromstring(f"<svg>{outline}</svg>")  # noqa: S314 - a constant of ours


def test_a_badge_shows_shape_word_and_colour() -> None:
    markup = state_badge("task", TaskState.WAITING_APPROVAL, 'says "why"')
    assert "tone-hold" in markup
    assert "<svg" in markup
    assert "needs approval" in markup
    assert 'title="says &quot;why&quot;"' in markup


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(KeyError):
        badge_for("run", "paused")


def test_a_bar_never_hides_a_failure_and_never_overflows() -> None:
    segments = bar_segments({"succeeded": 9_998, "failed": 1, "running": 1}, 10_000)
    assert [segment.tone for segment in segments] == ["ok", "bad", "run"]
    assert segments[1].width > 0.5
    assert segments[-1].end <= 100.01
    for before, after in pairwise(segments):
        assert after.start == pytest.approx(before.end, abs=0.02)


def test_an_empty_run_has_an_empty_bar() -> None:
    assert bar_segments({}, 0) == []


def test_a_meter_says_its_figures_and_turns_when_full() -> None:
    assert "Slots: 3 of 4" in meter(3, 4, "Slots")
    assert 'class="meter full"' in meter(4, 4, "Slots")
    assert 'class="meter full"' not in meter(0, 0, "Slots")


def test_no_time_is_a_dash() -> None:
    assert "&ndash;" in moment(None)
