"""What the kernel refuses.

KernelError
|-- IllegalTransition      a move that no state table allows: a bug or a lost race, never a user's mistake
|-- JsonInvalid            text that is not strict JSON, or a value that cannot be stored as JSON
|-- CycleFound             tasks that wait for each other
|-- ProblemsFound          carries every problem at once
|   |-- DefinitionInvalid      a workflow definition
|   |-- ReferencesInvalid      a task input with malformed references
|   `-- ParamsInvalid          the parameters of one run
|-- InputUnresolvable      a reference that leads to no value
`-- InputTooLarge          a resolved input over the limit
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

MAX_PROBLEMS = 200
"""How many problems one refusal lists; the rest is counted in a closing `more_problems` entry."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (`$.tasks[3].timeout_ms`), a stable code, a sentence for people."""

    path: str
    code: str
    message: str


class KernelError(Exception):
    """Base of everything that the kernel raises on purpose."""


class IllegalTransition(KernelError):
    """No table allows this move."""

    def __init__(self, entity: str, source: str, target: str) -> None:
        super().__init__(f"A {entity} cannot go from {source} to {target}.")
        self.entity = entity
        self.source = source
        self.target = target


class JsonInvalid(KernelError):
    """Text that is not strict JSON, or a value that JSON (as it is stored here) cannot hold.

    `line` and `column` count from 1 and are known when text was read; `path` names the offending value.
    Codes: invalid_json, invalid_utf8, duplicate_key, invalid_number, integer_too_long, invalid_text,
    too_deep, not_json, too_large.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.path = path


class CycleFound(KernelError):
    """Tasks that wait for each other: each key depends on the next, and the last one closes the circle."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(f"Tasks wait for each other: {describe_cycle(self.keys)}.")


def describe_cycle(keys: Sequence[str], *, limit: int = 12) -> str:
    """The circle in words, `a -> b -> a`; a long one is cut in the middle, never at its closing end."""
    if len(keys) <= limit:
        return " -> ".join(keys)
    kept = [*keys[: limit - 3], f"... {len(keys) - limit + 1} more ...", *keys[-2:]]
    return " -> ".join(kept)


class ProblemsFound(KernelError):
    """Everything that is wrong with one document, in the order of the document."""

    summary: ClassVar[str] = "The document is not valid"

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = list(problems)
        hidden = len(found) - MAX_PROBLEMS
        if hidden > 0:
            note = Problem("$", "more_problems", f"{hidden} further problems are not listed.")
            found = [*found[:MAX_PROBLEMS], note]
        self.problems = tuple(found)
        first = f"{found[0].path}: {found[0].message}" if found else "no problem was named."
        rest = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        super().__init__(f"{self.summary}: {first}{rest}")


class DefinitionInvalid(ProblemsFound):
    """A workflow definition that cannot be published."""

    summary = "The workflow definition is not valid"


class ReferencesInvalid(ProblemsFound):
    """A task input whose references are malformed."""

    summary = "The input's references are not valid"


class ParamsInvalid(ProblemsFound):
    """Run parameters that do not satisfy the workflow's schema."""

    summary = "The run parameters are not valid"


class InputUnresolvable(KernelError):
    """A reference that leads to no value; `path` is the place in the input, `reference` the text it holds."""

    code = "input_unresolvable"

    def __init__(self, path: str, reference: str, reason: str) -> None:
        super().__init__(f'{path}: "{reference}" leads to no value: {reason}.')
        self.path = path
        self.reference = reference
        self.reason = reason


class InputTooLarge(KernelError):
    """A resolved input that takes more than `max_bytes` of JSON; how much more is not counted to the end."""

    code = "input_too_large"

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"The resolved input takes more than {max_bytes} bytes of JSON.")
        self.max_bytes = max_bytes
