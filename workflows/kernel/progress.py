"""What an outcome leads to: what unlocks, what is skipped, whether the run settles; and reconciliation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workflows.kernel.errors import Problem
from workflows.kernel.graph import Graph
from workflows.kernel.states import RunState, TaskState

_BLOCKING = frozenset({TaskState.FAILED, TaskState.SKIPPED})
_NEVER_STARTED = frozenset({TaskState.WAITING_DEPENDENCIES, TaskState.SKIPPED, TaskState.CANCELED})


@dataclass(frozen=True, slots=True)
class Progress:
    """Consequences of some outcomes.

    `decrements`: position -> how many of its dependencies just succeeded; a task whose count of unmet
    dependencies reaches 0 is ready. `skipped`: everything downstream of a failure, breadth-first, each once;
    those already terminal (skipped by an earlier failure) stay as they are. No position is in both.
    """

    decrements: dict[int, int]
    skipped: tuple[int, ...]


def advance(graph: Graph, *, succeeded: Collection[int], failed: Collection[int]) -> Progress:
    """Consequences of tasks that have just become succeeded or failed (each for the first time)."""
    skipped = graph.descendants(failed) if failed else []
    out = set(skipped)
    decrements: dict[int, int] = {}
    for position in succeeded:
        for successor in graph.successors[position]:
            if successor not in out:
                decrements[successor] = decrements.get(successor, 0) + 1
    return Progress(decrements, tuple(skipped))


def settled_state(counts: Mapping[TaskState, int]) -> RunState | None:
    """The final state of a run whose tasks are counted by state, or None while any task is not terminal.

    Nothing counted at all is not settled either: a run has tasks. Negative counts are a `ValueError`.
    """
    total = 0
    for state, count in counts.items():
        if count < 0:
            raise ValueError(f"{count} tasks are counted as {state}.")
        if count and not state.terminal:
            return None
        total += count
    if not total:
        return None
    if counts.get(TaskState.FAILED):
        return RunState.FAILED
    if counts.get(TaskState.CANCELED):
        return RunState.CANCELED
    return RunState.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What graph and states say, whatever the stored counters claim.

    `unmet`: per position how many dependencies have not succeeded. `counts`: tasks per state, all ten.
    `ready`: waiting tasks whose dependencies all succeeded. `skip`: waiting tasks downstream of a failure.
    `settled`: the run's final state, if every task is terminal. `problems`: states that no legal history
    leads to, each with the path of its task.
    """

    unmet: tuple[int, ...]
    counts: Mapping[TaskState, int]
    ready: tuple[int, ...]
    skip: tuple[int, ...]
    settled: RunState | None
    problems: tuple[Problem, ...]


def reconcile(graph: Graph, states: Sequence[TaskState]) -> Reconciliation:
    """Recompute everything derivable from the graph and the state of each task, in O(V + E)."""
    if len(states) != len(graph.keys):
        raise ValueError(f"The graph has {len(graph.keys)} tasks, but {len(states)} states were given.")
    unmet = _unmet(graph, states)
    seen = Counter(states)
    counts = {state: seen.get(state, 0) for state in TaskState}
    waiting = TaskState.WAITING_DEPENDENCIES
    skip: list[int] = []
    if any(counts[state] for state in _BLOCKING):
        sources = [position for position, state in enumerate(states) if state in _BLOCKING]
        skip = [position for position in graph.descendants(sources) if states[position] is waiting]
    ready = [position for position, state in enumerate(states) if state is waiting and not unmet[position]]
    return Reconciliation(
        unmet=tuple(unmet),
        counts=MappingProxyType(counts),
        ready=tuple(ready),
        skip=tuple(skip),
        settled=settled_state(counts),
        problems=tuple(_problems(graph, states, unmet, ready, skip)),
    )


def _unmet(graph: Graph, states: Sequence[TaskState]) -> list[int]:
    unmet = list(graph.in_degrees)
    for position, state in enumerate(states):
        if state is TaskState.SUCCEEDED:
            for successor in graph.successors[position]:
                unmet[successor] -= 1
    return unmet


def _problems(
    graph: Graph,
    states: Sequence[TaskState],
    unmet: Sequence[int],
    ready: Sequence[int],
    skip: Sequence[int],
) -> list[Problem]:
    found: list[tuple[int, str, str]] = []
    found += [(position, "not_unlocked", "waits, but all its dependencies succeeded") for position in ready]
    found += [(position, "not_skipped", "waits, but an ancestor failed") for position in skip]
    for position, state in enumerate(states):
        if unmet[position] and state not in _NEVER_STARTED:
            sentence = f"is {state}, but {unmet[position]} of its dependencies have not succeeded"
            found.append((position, "started_too_early", sentence))
        elif state is TaskState.SKIPPED and not any(
            states[needed] in _BLOCKING for needed in graph.dependencies[position]
        ):
            found.append((position, "skipped_without_cause", "is skipped, but no ancestor failed"))
    return [
        Problem(f"$.tasks[{position}]", code, f"Task {graph.keys[position]} {sentence}.")
        for position, code, sentence in sorted(found)
    ]
