"""Inputs as tasks get them: references to params and outputs resolved, in the claim transaction.

One read for all outputs and one for all params that the batch refers to, none if nothing refers to anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dispatch.statements import sql
from workflows.compiled import compiled_version
from workflows.kernel.canonical import JsonValue, loads
from workflows.kernel.errors import InputTooLarge, InputUnresolvable
from workflows.kernel.references import Reference, resolve

MAX_RESOLVED_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Input:
    """The input of one claimed task, or why it has none. ``size`` is in bytes of JSON."""

    value: JsonValue = None
    size: int = 0
    error_code: str = ""
    error_message: str = ""


def resolve_inputs(tasks: Sequence[Mapping[str, Any]], versions: Mapping[UUID, int]) -> list[Input]:
    """The input of each task, in order. ``versions`` is the version id of each run."""
    references = [
        compiled_version(versions[task["run_id"]]).references.get(task["position"], ()) for task in tasks
    ]
    outputs = _outputs(tasks, references)
    params = _params(tasks, references)
    answers = []
    for task, refs in zip(tasks, references, strict=True):
        run_id = task["run_id"]
        definition = compiled_version(versions[run_id]).definition.tasks[task["position"]]
        if not refs:
            answers.append(Input(value=definition.input, size=_size(definition.input)))
        else:
            answers.append(_resolve(definition.input, params.get(run_id), outputs.get(run_id, {})))
    return answers


def _resolve(value: JsonValue, params: JsonValue, outputs: Mapping[str, JsonValue]) -> Input:
    try:
        resolved = resolve(value, params=params, outputs=outputs, max_bytes=MAX_RESOLVED_BYTES)
    except (InputUnresolvable, InputTooLarge) as problem:
        return Input(error_code=problem.code, error_message=str(problem))
    return Input(value=resolved, size=_size(resolved))


def _size(value: JsonValue) -> int:
    """Bytes on the wire, for values that were checked before: the quick encoder will do."""
    return 0 if value is None else len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _outputs(
    tasks: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Reference]]
) -> dict[UUID, dict[str, JsonValue]]:
    wanted = {
        (task["run_id"], ref.task_key)
        for task, refs in zip(tasks, references, strict=True)
        for ref in refs
        if ref.source == "tasks" and ref.task_key is not None
    }
    found: dict[UUID, dict[str, JsonValue]] = {}
    if wanted:
        pairs = sorted(wanted)
        rows = sql.rows("read_outputs", run_ids=[run for run, _ in pairs], keys=[key for _, key in pairs])
        for run_id, key, output in rows:
            found.setdefault(run_id, {})[key] = None if output is None else loads(output)
    return found


def _params(
    tasks: Sequence[Mapping[str, Any]], references: Sequence[Sequence[Reference]]
) -> dict[UUID, JsonValue]:
    wanted = {
        task["run_id"]
        for task, refs in zip(tasks, references, strict=True)
        if any(ref.source == "params" for ref in refs)
    }
    if not wanted:
        return {}
    return {run_id: loads(text) for run_id, text in sql.rows("read_params", run_ids=sorted(wanted))}
