"""Inputs as tasks get them: references to params and outputs resolved, in the claim transaction.

One read for all outputs and one for all params that the batch refers to, none if nothing refers to anything. Neither
reads more than the answer could hold, whatever stands behind the references.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dispatch.statements import sql
from workflows.compiled import compiled_version
from workflows.kernel.canonical import JsonValue, loads
from workflows.kernel.errors import InputTooLarge, InputUnresolvable
from workflows.kernel.references import Reference, resolve

MAX_RESOLVED_BYTES = 256 * 1024
UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True)
class Input:
    """The input of one claimed task, or why it has none. ``size`` is in bytes of JSON."""

    value: JsonValue = None
    size: int = 0
    error_code: str = ""
    error_message: str = ""


def resolve_inputs(
    tasks: Sequence[Mapping[str, Any]], versions: Mapping[UUID, int], *, most_bytes: int | None
) -> Iterator[Input]:
    """The input of each task, in order, made as it is asked for. ``versions`` is the version id of each run.

    Ends early, before a task that refers to something beyond ``most_bytes`` of outputs or of params; never before
    the first task.
    """
    references = [
        compiled_version(versions[task["run_id"]]).references.get(task["position"], ()) for task in tasks
    ]
    found = _Found(UNBOUNDED if most_bytes is None else most_bytes)
    found.read_outputs(tasks, references)
    found.read_params(tasks, references)
    for task, refs in zip(tasks, references, strict=True):
        run_id = task["run_id"]
        definition = compiled_version(versions[run_id]).definition.tasks[task["position"]]
        if not refs:
            yield Input(value=definition.input, size=_size(definition.input))
        elif found.has_all(run_id, refs):
            yield _resolve(definition.input, found.params.get(run_id), found.outputs.get(run_id, {}))
        else:
            return


def _resolve(value: JsonValue, params: JsonValue, outputs: Mapping[str, JsonValue]) -> Input:
    try:
        resolved = resolve(value, params=params, outputs=outputs, max_bytes=MAX_RESOLVED_BYTES)
    except (InputUnresolvable, InputTooLarge) as problem:
        return Input(error_code=problem.code, error_message=str(problem))
    return Input(value=resolved, size=_size(resolved))


def _size(value: JsonValue) -> int:
    """Bytes on the wire, for values that were checked before: the quick encoder will do."""
    return 0 if value is None else len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


class _Found:
    """What inputs refer to, as far as it was read."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.outputs: dict[UUID, dict[str, JsonValue]] = {}
        self.params: dict[UUID, JsonValue] = {}
        self._cut: set[tuple[UUID, str | None]] = set()

    def has_all(self, run_id: UUID, references: Sequence[Reference]) -> bool:
        return not self._cut or all((run_id, _source(ref)) not in self._cut for ref in references)

    def read_outputs(
        self, tasks: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Reference]]
    ) -> None:
        wanted, must = _wanted(tasks, references, "tasks")
        if not wanted:
            return
        rows = sql.rows(
            "read_outputs",
            run_ids=[run_id for run_id, _ in wanted],
            keys=[key for _, key in wanted],
            must=must,
            most=self._most_bytes,
        )
        for run_id, key, output, fits in rows:
            if fits:
                self.outputs.setdefault(run_id, {})[key] = None if output is None else loads(output)
            else:
                self._cut.add((run_id, key))

    def read_params(
        self, tasks: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Reference]]
    ) -> None:
        wanted, must = _wanted(tasks, references, "params")
        if not wanted:
            return
        run_ids = [run_id for run_id, _ in wanted]
        rows = sql.rows("read_params", run_ids=run_ids, must=must, most=self._most_bytes)
        for run_id, params, fits in rows:
            if fits:
                self.params[run_id] = loads(params)
            else:
                self._cut.add((run_id, None))


def _source(reference: Reference) -> str | None:
    """The task whose output it refers to; None for the params."""
    return reference.task_key if reference.source == "tasks" else None


def _wanted(
    tasks: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Reference]], source: str
) -> tuple[list[tuple[UUID, str | None]], int]:
    """What is referred to of this source, in order, each once; and how many of the first the first task needs."""
    of_each = [
        [(task["run_id"], _source(ref)) for ref in refs if ref.source == source]
        for task, refs in zip(tasks, references, strict=True)
    ]
    return list(dict.fromkeys(one for some in of_each for one in some)), len(
        set(of_each[0])
    ) if of_each else 0
