"""The dependency graph of one workflow version: compiled once, shared by all its runs, never changed.

Tasks are positions (their index in the definition). All walks are iterative: a chain of 10,000 tasks is as
welcome as a fan. Building and every walk cost O(V + E).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workflows.kernel.errors import CycleFound


@dataclass(frozen=True, slots=True)
class Graph:
    """Who waits for whom, as positions. `order` is one topological order, dependencies first."""

    keys: tuple[str, ...]
    positions: Mapping[str, int]
    successors: tuple[tuple[int, ...], ...]
    dependencies: tuple[tuple[int, ...], ...]
    in_degrees: tuple[int, ...]
    roots: tuple[int, ...]
    order: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def descendants(self, sources: Iterable[int]) -> list[int]:
        """Everything downstream of `sources`, breadth-first, each once, the sources themselves left out."""
        return _walk(self.successors, sources)

    def ancestors(self, position: int) -> set[int]:
        """Everything upstream of a task."""
        return set(_walk(self.dependencies, (position,)))

    def layers(self) -> tuple[int, ...]:
        """Per position the length of the longest path that leads to it; roots are 0."""
        depth = [0] * len(self.keys)
        for position in self.order:
            after = depth[position] + 1
            for successor in self.successors[position]:
                if depth[successor] < after:
                    depth[successor] = after
        return tuple(depth)

    def ancestor_sets(self) -> list[int]:
        """All ancestors of all tasks: bit `p` of the integer at `q` says that p precedes q.

        One pass and V * V / 8 bytes, where asking `ancestors` for every task would walk the graph V times.
        """
        sets = [0] * len(self.keys)
        for position in self.order:
            bits = 0
            for dependency in self.dependencies[position]:
                bits |= sets[dependency] | 1 << dependency
            sets[position] = bits
        return sets


def _walk(edges: Sequence[Sequence[int]], sources: Iterable[int]) -> list[int]:
    queue = deque(sources)
    seen = set(queue)
    reached: list[int] = []
    while queue:
        for neighbour in edges[queue.popleft()]:
            if neighbour not in seen:
                seen.add(neighbour)
                reached.append(neighbour)
                queue.append(neighbour)
    return reached


def compile_graph(keys: Sequence[str], depends_on: Sequence[Sequence[str]]) -> Graph:
    """Build the graph; `depends_on[i]` holds the keys that `keys[i]` waits for.

    Raises `CycleFound` naming the circle. Repeated keys, repeated dependencies and unknown keys are the
    caller's to refuse with a path; here they are a `ValueError`.
    """
    positions = {key: position for position, key in enumerate(keys)}
    if len(positions) != len(keys):
        raise ValueError("A key is used twice.")
    if len(depends_on) != len(keys):
        raise ValueError(f"{len(keys)} keys, but dependencies of {len(depends_on)} tasks.")
    dependencies = [_resolve(key, names, positions) for key, names in zip(keys, depends_on, strict=True)]
    graph, cycles = build_graph(keys, dependencies)
    if graph is None:
        raise CycleFound([keys[position] for position in cycles[0]])
    return graph


def build_graph(
    keys: Sequence[str], dependencies: Sequence[Sequence[int]]
) -> tuple[Graph | None, list[list[int]]]:
    """The graph over positions, or None and the circles that forbid it (each closed: first = last)."""
    successors = _reverse(dependencies)
    in_degrees = tuple(map(len, dependencies))
    order = _topological_order(successors, in_degrees)
    if len(order) != len(keys):
        return None, _find_cycles(dependencies, order)
    graph = Graph(
        keys=tuple(keys),
        positions=MappingProxyType({key: position for position, key in enumerate(keys)}),
        successors=successors,
        dependencies=tuple(map(tuple, dependencies)),
        in_degrees=in_degrees,
        roots=tuple(position for position, degree in enumerate(in_degrees) if degree == 0),
        order=tuple(order),
    )
    return graph, []


def _resolve(key: str, names: Sequence[str], positions: Mapping[str, int]) -> list[int]:
    try:
        found = [positions[name] for name in names]
    except KeyError as missing:
        raise ValueError(f"Task {key} depends on {missing}, which does not exist.") from None
    if len(found) > 1 and len(set(found)) != len(found):
        raise ValueError(f"Task {key} names a dependency twice.")
    return found


def _reverse(dependencies: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    successors: list[list[int]] = [[] for _ in dependencies]
    for position, needed in enumerate(dependencies):
        for dependency in needed:
            successors[dependency].append(position)
    return tuple(map(tuple, successors))


def _topological_order(successors: Sequence[Sequence[int]], in_degrees: Sequence[int]) -> list[int]:
    """Kahn's algorithm; tasks that are part of a cycle, or come after one, are missing."""
    unmet = list(in_degrees)
    order = [position for position, degree in enumerate(unmet) if degree == 0]
    for position in order:  # grows while it is walked
        for successor in successors[position]:
            unmet[successor] -= 1
            if unmet[successor] == 0:
                order.append(successor)
    return order


def _find_cycles(dependencies: Sequence[Sequence[int]], order: Sequence[int]) -> list[list[int]]:
    """Circles among the tasks that a topological order left out.

    Every task left out has a dependency that was left out as well, so following the first such dependency
    must run into a circle. Circles without a common task are all found, in O(V + E).
    """
    sorted_out = bytearray(len(dependencies))
    for position in order:
        sorted_out[position] = 1
    walked_in = [-1] * len(dependencies)
    cycles: list[list[int]] = []
    for start in range(len(dependencies)):
        position, path = start, []
        while not sorted_out[position] and walked_in[position] == -1:
            walked_in[position] = start
            path.append(position)
            position = next(needed for needed in dependencies[position] if not sorted_out[needed])
        if path and walked_in[position] == start:
            cycles.append([*path[path.index(position) :], position])
    return cycles
