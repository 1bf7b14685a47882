"""Data flow: task inputs that take values from run parameters and from the outputs of earlier tasks.

A value of the form `{"$from": "tasks.<key>.output<.path>"}` or `{"$from": "params<.path>"}`, and nothing else
beside that key, stands for the whole value found there. There are no templates inside strings. A path is
dot-separated; a numeric segment indexes an array (in an object it is an ordinary key).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from workflows.kernel.canonical import MAX_DEPTH, encode
from workflows.kernel.errors import InputTooLarge, InputUnresolvable, Problem, ReferencesInvalid
from workflows.kernel.json_text import json_path

MARK = "$from"
MAX_REFERENCES = 1_000
"""References in one task's input."""
MAX_REFERENCE_CHARACTERS = 1_024

_START = r"(?:params|tasks\.(?P<key>[a-z0-9_-]{1,64})\.output)"
_SHAPE = re.compile(rf"{_START}(?P<path>(?:\.[^.]+)*)\Z", re.DOTALL)
_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
_FORMS = "tasks.<key>.output<.path> or params<.path>"

_Place = tuple["str | int", ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a value comes from: the run's parameters or the output of `task_key`, then along `path`."""

    source: Literal["params", "tasks"]
    task_key: str | None
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        start = ("params",) if self.source == "params" else ("tasks", str(self.task_key), "output")
        return ".".join([*start, *map(str, self.path)])


def parse_reference(text: object) -> Reference | None:
    """The reference that a `$from` holds, or None if it is not of one of the two forms."""
    if not isinstance(text, str) or len(text) > MAX_REFERENCE_CHARACTERS:
        return None
    match = _SHAPE.match(text)
    if match is None:
        return None
    segments = match["path"].split(".")[1:]
    path = tuple(int(segment) if _INDEX.match(segment) else segment for segment in segments)
    key = match["key"]
    return Reference("params" if key is None else "tasks", key, path)


def scan_references(
    value: JsonValue, *, root: str = "$"
) -> tuple[list[tuple[str, Reference]], list[Problem]]:
    """Every reference of an input with the JSON path where it stands, and every malformed one."""
    found: list[tuple[str, Reference]] = []
    problems: list[Problem] = []
    stack: list[tuple[JsonValue, _Place]] = [(value, ())]
    while stack:
        node, place = stack.pop()
        if isinstance(node, dict):
            if MARK in node:
                result = _read(node, json_path(place, root))
                if isinstance(result, Problem):
                    problems.append(result)
                else:
                    found.append((json_path(place, root), result))
                continue
            stack += [(item, (*place, key)) for key, item in reversed(node.items())]
        elif isinstance(node, list):
            stack += [(item, (*place, index)) for index, item in reversed(list(enumerate(node)))]
    if len(found) > MAX_REFERENCES:
        sentence = f"The input holds {len(found):,} references; {MAX_REFERENCES:,} are allowed."
        problems.append(Problem(root, "too_many_references", sentence))
    return found, problems


def _read(node: dict[str, JsonValue], path: str) -> Reference | Problem:
    if len(node) > 1:
        return Problem(path, "invalid_reference", f'An object with "{MARK}" may have no other key.')
    reference = parse_reference(node[MARK])
    if reference is None:
        return Problem(f'{path}["{MARK}"]', "invalid_reference", f"A reference has the form {_FORMS}.")
    return reference


def find_references(input: JsonValue) -> list[tuple[str, Reference]]:  # noqa: A002 (the field's own name)
    """Every reference with its JSON path; raises `ReferencesInvalid` with every malformed one."""
    found, problems = scan_references(input)
    if problems:
        raise ReferencesInvalid(problems)
    return found


def resolve(
    input: JsonValue,  # noqa: A002 (the field's own name)
    *,
    params: JsonValue,
    outputs: Mapping[str, JsonValue],
    max_bytes: int | None = None,
) -> JsonValue:
    """The input with every reference replaced by the value it leads to.

    `outputs` maps the keys of succeeded tasks to their outputs. Raises `InputUnresolvable` for the first
    reference that leads nowhere (or if the result would no longer be an object, or be nested deeper than
    JSON here may be), and `InputTooLarge` before a result over `max_bytes` of canonical JSON is built up.
    Values found are shared with `params` and `outputs`, not copied: the result is to be read only.
    """
    resolver = _Resolver(params, outputs, max_bytes)
    resolved = resolver.fill(input, ())
    if input is not None and not isinstance(resolved, dict):
        raise InputUnresolvable(
            "$", str(find_references(input)[0][1]), "the input of a task must be an object"
        )
    if max_bytes is not None and len(encode(resolved).encode()) > max_bytes:
        raise InputTooLarge(max_bytes)
    return resolved


class _Resolver:
    """One resolution; each value that is placed is looked up and measured once."""

    def __init__(self, params: JsonValue, outputs: Mapping[str, JsonValue], max_bytes: int | None) -> None:
        self._params = params
        self._outputs = outputs
        self._max_bytes = max_bytes
        self._placed_bytes = 0
        self._known: dict[str, tuple[JsonValue, int, int]] = {}

    def fill(self, node: JsonValue, place: _Place) -> JsonValue:
        """Recursion is as deep as the stored input, which `MAX_DEPTH` bounds."""
        if isinstance(node, dict):
            if MARK in node:
                return self._place(str(node[MARK]), place)
            return {key: self.fill(item, (*place, key)) for key, item in node.items()}
        if isinstance(node, list):
            return [self.fill(item, (*place, index)) for index, item in enumerate(node)]
        return node

    def _place(self, text: str, place: _Place) -> JsonValue:
        if text not in self._known:
            value = self._look_up(text, json_path(place))
            size = len(encode(value)) if self._max_bytes is not None else 0
            self._known[text] = (value, size, _depth(value))
        value, size, depth = self._known[text]
        if len(place) + depth > MAX_DEPTH:
            raise InputUnresolvable(json_path(place), text, "the result would be nested too deeply")
        self._placed_bytes += size
        if self._max_bytes is not None and self._placed_bytes > self._max_bytes:
            raise InputTooLarge(self._max_bytes)
        return value

    def _look_up(self, text: str, path: str) -> JsonValue:
        reference = parse_reference(text)
        if reference is None:
            raise InputUnresolvable(path, text, f"a reference has the form {_FORMS}")
        if reference.source == "params":
            value = self._params
        elif reference.task_key in self._outputs:
            value = self._outputs[str(reference.task_key)]
        else:
            raise InputUnresolvable(path, text, f"task {reference.task_key} has no output")
        for number, segment in enumerate(reference.path):
            value = _step(value, segment, path, text, number)
        return value


def _step(value: JsonValue, segment: str | int, path: str, text: str, number: int) -> JsonValue:
    if isinstance(value, dict) and str(segment) in value:
        return value[str(segment)]
    if isinstance(value, list) and isinstance(segment, int) and segment < len(value):
        return value[segment]
    kind = "neither an object nor an array"
    if isinstance(value, dict):
        kind = "an object without that key"
    elif isinstance(value, list):
        kind = "an array without that index"
    where = f'"{segment}" (step {number + 1} of its path)'
    raise InputUnresolvable(path, text, f"there is no {where}, because the value there is {kind}")


def _depth(value: JsonValue) -> int:
    deepest = 0
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, depth + 1)
            stack += [(item, depth + 1) for item in (node.values() if isinstance(node, dict) else node)]
    return deepest
