"""What the fields of a definition mean together: keys, dependencies, cycles, executors, inputs, references.

These checks read the document as it was sent and skip over what has the wrong type, so that a bad field in
one task does not hide what is wrong with another. Types and limits of single fields are the format's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from workflows.kernel.canonical import encode
from workflows.kernel.errors import Problem, describe_cycle
from workflows.kernel.format import DEFAULT_EXECUTOR, EXECUTOR_PATTERN, MAX_DEPENDENCIES, MAX_INPUT_BYTES
from workflows.kernel.graph import Graph, build_graph
from workflows.kernel.params import check_schema, declares
from workflows.kernel.references import MARK, Reference, scan_references

_QUOTED_MARK = to_json(MARK)
_FIELD = re.compile(r"\$\.params|\$\.tasks\[\d+\]\.input")


def field_of(path: str) -> str:
    """The field of free content that a path lies in (`$.params`, `$.tasks[3].input`), or else the path."""
    match = _FIELD.match(path)
    return match.group() if match else path


@dataclass(frozen=True, slots=True)
class _Outline:
    """The readable parts of a document. `unsound`: fields with content that JSON cannot store."""

    tasks: list[dict[str, Any]]
    keys: list[str | None]
    first: dict[str, int]
    unsound: frozenset[str]


def _outline(document: dict[str, Any], unsound: Iterable[str]) -> _Outline:
    listed = document.get("tasks")
    tasks = [task if isinstance(task, dict) else {} for task in listed] if isinstance(listed, list) else []
    keys = [key if isinstance(key := task.get("key"), str) else None for task in tasks]
    first: dict[str, int] = {}
    for position, key in enumerate(keys):
        if key is not None:
            first.setdefault(key, position)
    return _Outline(tasks, keys, first, frozenset(unsound))


def check_meaning(
    document: dict[str, Any], *, executors: Collection[str] | None, unsound: Iterable[str] = ()
) -> tuple[list[Problem], Graph | None]:
    """Everything that is wrong between fields and between tasks; and the graph, unless that is wrong.

    `unsound` names fields (see `field_of`) that are not to be entered. With no problem here and none of
    structure, the graph is that of the definition.
    """
    read = _outline(document, unsound)
    schema = document.get("params") if "$.params" not in read.unsound else None
    problems = check_schema(schema)
    usable = schema if isinstance(schema, dict) and not problems else {}
    problems += _check_keys(read)
    if executors is not None:
        problems += _check_executors(read, executors)
    problems += _check_retries(read)
    edges = _Edges(read)
    problems += edges.problems
    graph: Graph | None = None
    if not edges.too_many:
        graph, cycles = build_graph([key or "" for key in read.keys], edges.found)
        problems += _describe_cycles(read, cycles)
    problems += _check_inputs(read, edges, graph, usable)
    return problems, graph


def _check_keys(read: _Outline) -> Iterator[Problem]:
    for position, key in enumerate(read.keys):
        if key is not None and read.first[key] != position:
            sentence = f'The key "{_short(key)}" is already used by tasks[{read.first[key]}].'
            yield Problem(f"$.tasks[{position}].key", "duplicate_key", sentence)


def _check_executors(read: _Outline, executors: Collection[str]) -> Iterator[Problem]:
    known = ", ".join(sorted(executors)) or "none"
    for position, task in enumerate(read.tasks):
        kind = task.get("executor", DEFAULT_EXECUTOR)
        if isinstance(kind, str) and kind not in executors and re.match(EXECUTOR_PATTERN, kind):
            sentence = f'No executor kind "{_short(kind)}" is known here; known: {known}.'
            yield Problem(f"$.tasks[{position}].executor", "unknown_executor", sentence)


def _check_retries(read: _Outline) -> Iterator[Problem]:
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

    def __init__(self, read: _Outline) -> None:
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

    def _of_task(self, read: _Outline, position: int, names: list[Any]) -> list[int]:
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


def _describe_cycles(read: _Outline, cycles: list[list[int]]) -> Iterator[Problem]:
    for cycle in cycles:
        keys = [_short(str(read.keys[position])) for position in cycle]
        sentence = f"Tasks wait for each other: {describe_cycle(keys)}."
        yield Problem(f"$.tasks[{cycle[0]}].depends_on", "dependency_cycle", sentence)


def _check_inputs(
    read: _Outline, edges: _Edges, graph: Graph | None, schema: dict[str, Any]
) -> Iterator[Problem]:
    ancestors: list[int] | None = None
    for position, task in enumerate(read.tasks):
        given = task.get("input")
        path = f"$.tasks[{position}].input"
        if not isinstance(given, dict) or path in read.unsound:
            continue
        text = to_json(given)  # ten times as fast as `encode`, and near enough to rule most inputs out
        if len(text) > MAX_INPUT_BYTES // 2:
            size = len(encode(given).encode())
            if size > MAX_INPUT_BYTES:
                sentence = f"The input takes {size:,} bytes of JSON; {MAX_INPUT_BYTES:,} are allowed."
                yield Problem(path, "too_large", sentence)
        if _QUOTED_MARK not in text:
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
    """Text that was sent, fit for a message: cut, and without characters that nobody can see or store."""
    cut = text if len(text) <= 64 else f"{text[:61]}..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]
