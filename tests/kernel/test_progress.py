"""Consequences of outcomes, settling, and reconciliation."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.strategies import dags
from workflows.kernel.graph import Graph, compile_graph
from workflows.kernel.progress import Progress, advance, reconcile, settled_state
from workflows.kernel.states import RunState, TaskState

Dag = tuple[list[str], list[list[str]]]

#   a -> b -> d -> e      c and d both need b; d also needs x
#        b -> c      x -> d
KEYS = ["a", "b", "c", "d", "e", "x"]
GRAPH = compile_graph(KEYS, [[], ["a"], ["b"], ["b", "x"], ["d"], []])
A, B, C, D, E, X = range(6)


@pytest.mark.parametrize(
    ("succeeded", "failed", "expected"),
    [
        ([A], [], Progress({B: 1}, ())),
        ([B, X], [], Progress({C: 1, D: 2}, ())),
        ([E], [], Progress({}, ())),
        ([], [A], Progress({}, (B, C, D, E))),
        ([X], [B], Progress({}, (C, D, E))),
        ([B], [X], Progress({C: 1}, (D, E))),
        ([], [A, X], Progress({}, (B, D, C, E))),
        ([], [], Progress({}, ())),
    ],
)
def test_outcomes_lead_to_unlocks_and_skips(
    succeeded: list[int], failed: list[int], expected: Progress
) -> None:
    assert advance(GRAPH, succeeded=succeeded, failed=failed) == expected


@given(dags(), st.data())
def test_every_edge_of_a_success_is_counted_once(dag: Dag, data: st.DataObject) -> None:
    graph = compile_graph(*dag)
    succeeded = data.draw(st.sets(st.sampled_from(range(len(graph)))))
    progress = advance(graph, succeeded=succeeded, failed=())
    for position in range(len(graph)):
        count = sum(dependency in succeeded for dependency in graph.dependencies[position])
        assert progress.decrements.get(position, 0) == count


@given(dags(), st.data())
def test_failures_skip_exactly_their_descendants(dag: Dag, data: st.DataObject) -> None:
    graph = compile_graph(*dag)
    split = data.draw(st.lists(st.sampled_from("sf-"), min_size=len(graph), max_size=len(graph)))
    succeeded = [position for position, mark in enumerate(split) if mark == "s"]
    failed = [position for position, mark in enumerate(split) if mark == "f"]
    progress = advance(graph, succeeded=succeeded, failed=failed)
    below = {position for position in range(len(graph)) if graph.ancestors(position) & set(failed)}
    assert set(progress.skipped) == below - set(failed)
    assert len(progress.skipped) == len(set(progress.skipped))
    assert not progress.decrements.keys() & set(progress.skipped)


ENDS = [state for state in TaskState if state.terminal]
OPEN = [state for state in TaskState if not state.terminal]


@pytest.mark.parametrize("state", OPEN)
def test_a_run_with_one_open_task_is_not_settled(state: TaskState) -> None:
    assert settled_state({TaskState.SUCCEEDED: 9, TaskState.FAILED: 1, state: 1}) is None


@pytest.mark.parametrize(
    "present", [mix for size in (1, 2, 3, 4) for mix in itertools.combinations(ENDS, size)]
)
def test_a_settled_run_is_failed_before_canceled_before_succeeded(present: tuple[TaskState, ...]) -> None:
    counts = dict.fromkeys(TaskState, 0) | dict.fromkeys(present, 3)
    expected = RunState.SUCCEEDED
    if TaskState.CANCELED in present:
        expected = RunState.CANCELED
    if TaskState.FAILED in present:
        expected = RunState.FAILED
    assert settled_state(counts) is expected


def test_nothing_counted_is_not_settled_and_nonsense_is_refused() -> None:
    assert settled_state({}) is None
    assert settled_state(dict.fromkeys(TaskState, 0)) is None
    with pytest.raises(ValueError, match="-1 tasks"):
        settled_state({TaskState.SUCCEEDED: 2, TaskState.FAILED: -1})


W, R, S, F, K, N = (
    TaskState.WAITING_DEPENDENCIES,
    TaskState.READY,
    TaskState.SUCCEEDED,
    TaskState.FAILED,
    TaskState.SKIPPED,
    TaskState.CANCELED,
)


@pytest.mark.parametrize(
    ("states", "unmet", "ready", "skip", "settled", "problems"),
    [
        ([R, W, W, W, W, R], (0, 1, 1, 2, 1, 0), (), (), None, []),
        ([S, W, W, W, W, S], (0, 0, 1, 1, 1, 0), (B,), (), None, [(B, "not_unlocked")]),
        (
            [S, F, W, W, W, S],
            (0, 0, 1, 1, 1, 0),
            (),
            (C, D, E),
            None,
            [(C, "not_skipped"), (D, "not_skipped"), (E, "not_skipped")],
        ),
        ([S, F, K, K, K, S], (0, 0, 1, 1, 1, 0), (), (), RunState.FAILED, []),
        ([S, N, N, N, N, S], (0, 0, 1, 1, 1, 0), (), (), RunState.CANCELED, []),
        ([S, S, S, S, S, S], (0, 0, 0, 0, 0, 0), (), (), RunState.SUCCEEDED, []),
        (
            [S, S, R, TaskState.RUNNING, W, R],
            (0, 0, 0, 1, 1, 0),
            (),
            (),
            None,
            [(D, "started_too_early")],
        ),
        ([S, S, K, W, W, R], (0, 0, 0, 1, 1, 0), (), (), None, [(C, "skipped_without_cause")]),
        (
            [S, W, W, S, S, S],
            (0, 0, 1, 1, 0, 0),
            (B,),
            (),
            None,
            [(B, "not_unlocked"), (D, "started_too_early")],
        ),
    ],
)
def test_reconciliation_says_what_graph_and_states_say(
    states: list[TaskState],
    unmet: tuple[int, ...],
    ready: tuple[int, ...],
    skip: tuple[int, ...],
    settled: RunState | None,
    problems: list[tuple[int, str]],
) -> None:
    found = reconcile(GRAPH, states)
    assert (found.unmet, found.ready, found.skip, found.settled) == (unmet, ready, skip, settled)
    assert [(problem.path, problem.code) for problem in found.problems] == [
        (f"$.tasks[{position}]", code) for position, code in problems
    ]
    assert all(KEYS[int(problem.path[8:-1])] in problem.message for problem in found.problems)
    assert found.counts == {state: Counter(states)[state] for state in TaskState}


def test_reconciliation_refuses_states_of_another_graph() -> None:
    with pytest.raises(ValueError, match="6 tasks, but 1 states"):
        reconcile(GRAPH, [TaskState.READY])


@given(dags(), st.data())
def test_advance_keeps_what_reconciliation_recomputes(dag: Dag, data: st.DataObject) -> None:
    """Counters carried along by `advance`, outcome by outcome, equal those recomputed from the states."""
    graph = compile_graph(*dag)
    states = [W if degree else R for degree in graph.in_degrees]
    unmet = list(graph.in_degrees)
    while open_tasks := [position for position, state in enumerate(states) if state is R]:
        position = data.draw(st.sampled_from(open_tasks))
        succeeds = data.draw(st.booleans())
        states[position] = S if succeeds else F
        _apply(graph, states, unmet, position, succeeds=succeeds)
        found = reconcile(graph, states)
        assert found.problems == ()
        for other, state in enumerate(states):
            if state is not K:
                assert found.unmet[other] == unmet[other]
    assert reconcile(graph, states).settled is (RunState.FAILED if F in states else RunState.SUCCEEDED)


def _apply(graph: Graph, states: list[TaskState], unmet: list[int], position: int, *, succeeds: bool) -> None:
    progress = advance(graph, succeeded=[position] * succeeds, failed=[position] * (not succeeds))
    for other, count in progress.decrements.items():
        unmet[other] -= count
        if unmet[other] == 0:
            assert states[other] is W
            states[other] = R
    for other in progress.skipped:
        assert states[other] in {W, K}
        states[other] = K
