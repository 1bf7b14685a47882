"""What the fields of a definition mean together: keys, dependencies, cycles, executors, inputs, references.

These checks read the document as it was sent and skip over what has the wrong type, so that a bad field in
one task does not hide what is wrong with another. Types and limits of single fields are the format's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from workflows.kernel.canonical import encode
from workflows.kernel.errors import Problem, describe_cycle
from workflows.kernel.format import DEFAULT_EXECUTOR, MAX_DEPENDENCIES, MAX_INPUT_BYTES
from workflows.kernel.graph import Graph, compile_graph, find_cycles, topological_order
from workflows.kernel.params import check_schema, declares
from workflows.kernel.references import MARK, Reference, scan_references


@dataclass(frozen=True, slots=True)
class Outline:
    """The readable parts of a document. `unsound`: paths that hold what JSON cannot store, not to be entered."""

    tasks: list[dict[str, Any]]
    keys: list[str | None]
    first: dict[str, int]
    params: Any
    unsound: frozenset[str]


def outline(document: dict[str, Any], unsound: Collection[str]) -> Outline:
    """Read what can be read."""
    listed = document.get("tasks")
    tasks = [task if isinstance(task, dict) else {} for task in listed] if isinstance(listed, list) else []
    keys = [key if isinstance(key := task.get("key"), str) else None for task in tasks]
    first: dict[str, int] = {}
    for position, key in enumerate(keys):
        if key is not None:
            first.setdefault(key, position)
    # "$.tasks[3].input.a[1]" makes "$.tasks[3].input" unsound as a whole; so does "$.params.x" the schema.
    roots = frozenset(_field_of(path) for path in unsound)
    return Outline(tasks, keys, first, document.get("params"), roots)


def _field_of(path: str) -> str:
    """The field a path lies in: `$.tasks[3].input.a` -> `$.tasks[3].input`; `$.params.x` -> `$.params`."""
    for mark in (".input", ".params"):
        head, found, _ = path.partition(mark)
        if found:
            return head + found
    return path


def check_meaning(
    document: dict[str, Any], *, executors: Collection[str] | None, unsound: Collection[str] = ()
) -> Iterator[Problem]:
    """Everything that is wrong between fields and between tasks."""
    read = outline(document, unsound)
    params_sound = "$.params" not in read.unsound
    schema_problems = check_schema(read.params) if params_sound else []
    yield from schema_problems
    yield from _check_keys(read)
    if executors is not None:
        yield from _check_executors(read, executors)
    yield from _check_retries(read)
    edges = _Edges(read)
    yield from edges.problems
    graph: Graph | None = None
    if not edges.too_many:
        graph, cycles = _graph(edges.found)
        yield from _describe_cycles(read, cycles)
    usable = read.params if params_sound and not schema_problems and isinstance(read.params, dict) else {}
    yield from _check_inputs(read, edges, graph, usable)


def _check_keys(read: Outline) -> Iterator[Problem]:
    for position, key in enumerate(read.keys):
        if key is not None and read.first[key] != position:
            sentence = f'The key "{_short(key)}" is already used by tasks[{read.first[key]}].'
            yield Problem(f"$.tasks[{position}].key", "duplicate_key", sentence)


def _check_executors(read: Outline, executors: Collection[str]) -> Iterator[Problem]:
    known = ", ".join(sorted(executors)) or "none"
    for position, task in enumerate(read.tasks):
        kind = task.get("executor", DEFAULT_EXECUTOR)
        if isinstance(kind, str) and kind not in executors:
            sentence = f'No executor kind "{_short(kind)}" is known here; known: {known}.'
            yield Problem(f"$.tasks[{position}].executor", "unknown_executor", sentence)


def _check_retries(read: Outline) -> Iterator[Problem]:
    for position, task in enumerate(read.tasks):
        retry = task.get("retry")
        if not isinstance(retry, dict):
            continue
        interval, ceiling = retry.get("interval_ms", 0), retry.get("max_interval_ms")
        if type(interval) is int and type(ceiling) is int and 0 <= ceiling < interval:
            sentence = "max_interval_ms must be at least interval_ms."
            yield Problem(f"$.tasks[{position}].retry.max_interval_ms", "out_of_range", sentence)


class _Edges:
    """Dependencies that can be understood, by position, and what is wrong with the others."""

    def __init__(self, read: Outline) -> None:
        self.found: list[list[int]] = []
        self.problems: list[Problem] = []
        self.unclear: set[int] = set()
        """Tasks with a dependency that could not be understood."""
        total = 0
        for position, task in enumerate(read.tasks):
            names = task.get("depends_on", [])
            names = names if isinstance(names, list) else []
            total += len(names)
            self.found.append([] if total > MAX_DEPENDENCIES else self._of_task(read, position, names))
        self.too_many = total > MAX_DEPENDENCIES
        if self.too_many:
            sentence = f"The tasks name {total:,} dependencies in all; {MAX_DEPENDENCIES:,} are allowed."
            self.problems = [Problem("$.tasks", "too_many_dependencies", sentence)]

    def _of_task(self, read: Outline, position: int, names: list[Any]) -> list[int]:
        found: list[int] = []
        seen: set[int] = set()
        for index, name in enumerate(names):
            if not isinstance(name, str):
                self.unclear.add(position)
                continue
            needed = read.first.get(name)
            if needed is None:
                self._refuse(position, index, "unknown_dependency", f'There is no task "{_short(name)}".')
            elif needed in seen:
                sentence = f'The dependency "{_short(name)}" is named twice.'
                self._refuse(position, index, "duplicate_dependency", sentence)
            else:
                seen.add(needed)
                found.append(needed)
        return found

    def _refuse(self, position: int, index: int, code: str, sentence: str) -> None:
        self.unclear.add(position)
        self.problems.append(Problem(f"$.tasks[{position}].depends_on[{index}]", code, sentence))


def _graph(dependencies: list[list[int]]) -> tuple[Graph | None, list[list[int]]]:
    """A graph over positions (keys may be missing or repeated here), or the circles in it."""
    names = [str(position) for position in range(len(dependencies))]
    successors: list[list[int]] = [[] for _ in dependencies]
    for position, needed in enumerate(dependencies):
        for dependency in needed:
            successors[dependency].append(position)
    order = topological_order(successors, [len(needed) for needed in dependencies])
    if len(order) != len(dependencies):
        return None, find_cycles(dependencies, order)
    return compile_graph(names, [[names[needed] for needed in row] for row in dependencies]), []


def _describe_cycles(read: Outline, cycles: list[list[int]]) -> Iterator[Problem]:
    for cycle in cycles:
        keys = [_short(str(read.keys[position])) for position in cycle]
        sentence = f"Tasks wait for each other: {describe_cycle(keys)}."
        yield Problem(f"$.tasks[{cycle[0]}].depends_on", "dependency_cycle", sentence)


def _check_inputs(
    read: Outline, edges: _Edges, graph: Graph | None, schema: dict[str, Any]
) -> Iterator[Problem]:
    ancestors: list[int] | None = None
    for position, task in enumerate(read.tasks):
        given = task.get("input")
        path = f"$.tasks[{position}].input"
        if not isinstance(given, dict) or path in read.unsound:
            continue
        text = encode(given)
        size = len(text) if text.isascii() else len(text.encode())
        if size > MAX_INPUT_BYTES:
            sentence = f"The input takes {size:,} bytes of JSON; {MAX_INPUT_BYTES:,} are allowed."
            yield Problem(path, "too_large", sentence)
        if f'"{MARK}"' not in text:
            continue
        found, problems = scan_references(given, root=path)
        yield from problems
        for place, reference in found:
            source = read.first.get(reference.task_key or "")
            if reference.source == "params":
                yield from _check_param(place, reference, schema)
            elif source is None:
                yield _bad_reference(place, "unknown_reference", f"There is no task {reference.task_key}.")
            elif graph is None or position in edges.unclear or source in edges.found[position]:
                continue
            else:
                ancestors = graph.ancestor_sets() if ancestors is None else ancestors
                if not ancestors[position] >> source & 1:
                    sentence = (
                        f"Task {reference.task_key} does not come before this one: add it to depends_on."
                    )
                    yield _bad_reference(place, "reference_not_ancestor", sentence)


def _check_param(place: str, reference: Reference, schema: dict[str, Any]) -> Iterator[Problem]:
    if reference.path and not declares(schema, str(reference.path[0])):
        sentence = f'The params schema declares no parameter "{_short(str(reference.path[0]))}".'
        yield _bad_reference(place, "unknown_reference", sentence)


def _bad_reference(place: str, code: str, sentence: str) -> Problem:
    return Problem(f'{place}["{MARK}"]', code, sentence)


def _short(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:61]}..."
