"""The transition tables, written out a second time, and what must hold for any table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import pytest

from workflows.kernel.errors import IllegalTransition
from workflows.kernel.states import (
    ATTEMPT_TRANSITIONS,
    RUN_TRANSITIONS,
    STATE_HELP,
    TASK_TRANSITIONS,
    AttemptState,
    RunState,
    TaskState,
    check_attempt_move,
    check_run_move,
    check_task_move,
)

RUN_MOVES = """
pending -> running canceled
running -> succeeded failed canceled
"""
TASK_MOVES = """
waiting_dependencies -> ready skipped canceled
ready -> queued waiting_approval canceled
queued -> running ready canceled
running -> succeeded waiting_retry failed ready waiting_approval canceled
waiting_retry -> ready failed canceled
waiting_approval -> ready succeeded failed canceled
"""
ATTEMPT_MOVES = """
running -> succeeded failed timed_out interrupted canceled released suspended
"""

MACHINES: list[tuple[type[StrEnum], Mapping[Any, frozenset[Any]], Callable[[Any, Any], None], str]] = [
    (RunState, RUN_TRANSITIONS, check_run_move, RUN_MOVES),
    (TaskState, TASK_TRANSITIONS, check_task_move, TASK_MOVES),
    (AttemptState, ATTEMPT_TRANSITIONS, check_attempt_move, ATTEMPT_MOVES),
]
each_machine = pytest.mark.parametrize(("states", "table", "check", "moves"), MACHINES)


def _pairs(moves: str) -> set[tuple[str, str]]:
    rows = [line.split(" -> ") for line in moves.strip().splitlines()]
    return {(source, target) for source, targets in rows for target in targets.split()}


@each_machine
def test_exactly_the_listed_moves_are_allowed(states: Any, table: Any, check: Any, moves: str) -> None:
    allowed = _pairs(moves)
    for source in states:
        for target in states:
            if (source.value, target.value) in allowed:
                check(source, target)
            else:
                with pytest.raises(IllegalTransition) as refused:
                    check(source, target)
                assert (refused.value.source, refused.value.target) == (source, target)


@each_machine
def test_every_state_is_in_the_table_and_terminal_means_no_exit(
    states: Any, table: Any, check: Any, moves: str
) -> None:
    assert set(table) == set(states)
    for state in states:
        assert state.terminal == (not table[state])


@each_machine
def test_every_state_can_be_reached_and_can_reach_an_end(
    states: Any, table: Any, check: Any, moves: str
) -> None:
    starts = {RunState: {"pending"}, TaskState: {"waiting_dependencies", "ready"}, AttemptState: {"running"}}
    reached = {states(name) for name in starts[states]}
    while grown := {target for source in reached for target in table[source]} - reached:
        reached |= grown
    assert reached == set(states)
    ending = {state for state in states if state.terminal}
    while grown := {state for state in states if table[state] & ending} - ending:
        ending |= grown
    assert ending == set(states)


def test_the_terminal_states_are_these() -> None:
    assert [state.value for state in RunState if state.terminal] == ["succeeded", "failed", "canceled"]
    assert [state.value for state in TaskState if state.terminal] == [
        "succeeded",
        "failed",
        "canceled",
        "skipped",
    ]
    assert [state.value for state in AttemptState if not state.terminal] == ["running"]


@each_machine
def test_help_says_three_sentences_about_every_state(states: Any, table: Any, check: Any, moves: str) -> None:
    assert set(STATE_HELP[states]) == set(states)
    for state in states:
        text = STATE_HELP[states][state]
        for sentence in (text.put_by, text.moved_by, text.if_it_stays):
            assert sentence.endswith(".")
            assert len(sentence) > 10
        assert ("Nobody" in text.moved_by) == state.terminal


def test_a_refused_move_says_who_and_where() -> None:
    with pytest.raises(IllegalTransition, match="A task cannot go from succeeded to running"):
        check_task_move(TaskState.SUCCEEDED, TaskState.RUNNING)
