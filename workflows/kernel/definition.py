"""From a document to a compiled workflow, or to everything that is wrong with it at once.

compile_workflow   a document from outside -> CompiledWorkflow, or DefinitionInvalid with every problem
load_compiled      the stored text of a version -> CompiledWorkflow
check_params       the parameters of one run against the workflow's schema
definition_schema  the JSON Schema of the format
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

from jsonschema.protocols import Validator
from pydantic import BaseModel, JsonValue, ValidationError

from workflows.kernel.canonical import digest, encode, find_faults
from workflows.kernel.checks import check_meaning, field_of
from workflows.kernel.errors import MAX_PROBLEMS, DefinitionInvalid, ParamsInvalid, Problem
from workflows.kernel.format import (
    MAX_PARAMS_BYTES,
    MAX_TASKS,
    RetryPolicy,
    TaskDefinition,
    WorkflowDefinition,
    definition_schema,
)
from workflows.kernel.graph import Graph, compile_graph
from workflows.kernel.params import build_validator, check_value
from workflows.kernel.references import MARK, Reference, scan_references
from workflows.kernel.structure import readable, structure_problems

__all__ = [
    "CompiledWorkflow",
    "RetryPolicy",
    "TaskDefinition",
    "WorkflowDefinition",
    "check_params",
    "compile_workflow",
    "definition_schema",
    "load_compiled",
]

_NAMED_IN_WARNING = 10


@dataclass(frozen=True)
class CompiledWorkflow:
    """One version, ready to run: shared by all its runs and never changed.

    `canonical` is the normalised definition (every default filled in) as canonical JSON: what is stored.
    `warnings` are about the document as it was sent; a version loaded from its stored text has none.
    """

    definition: WorkflowDefinition
    graph: Graph
    canonical: str
    warnings: tuple[Problem, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical definition without its defaults.

        So an explicit `"executor": "mock"` hashes like an absent one, and a field that the format gains later
        changes no hash of a definition that does not use it.
        """
        return digest(encode(_minimal(self.definition)))

    @cached_property
    def references(self) -> Mapping[int, tuple[Reference, ...]]:
        """By task position, what its input takes from elsewhere; tasks without references are left out."""
        found: dict[int, tuple[Reference, ...]] = {}
        if f'"{MARK}"' in self.canonical:
            for position, task in enumerate(self.definition.tasks):
                if task.input is not None:
                    references = scan_references(task.input)[0]
                    if references:
                        found[position] = tuple(reference for _, reference in references)
        return MappingProxyType(found)

    @cached_property
    def params_validator(self) -> Validator | None:
        schema = self.definition.params
        return None if schema is None else build_validator(schema)


def compile_workflow(document: JsonValue, *, executors: Collection[str] | None = None) -> CompiledWorkflow:
    """Check a document and compile it; raises `DefinitionInvalid` with every problem at once.

    `executors` are the kinds that exist; without them any well-formed kind passes. The document is not kept:
    changing it afterwards changes nothing.
    """
    if not isinstance(document, dict):
        raise DefinitionInvalid([Problem("$", "wrong_type", "A workflow definition is an object.")])
    tasks = document.get("tasks")
    if isinstance(tasks, list) and len(tasks) > MAX_TASKS:
        # Before anything looks at a single task: the cost of refusing must not grow with what is refused.
        sentence = f"The definition has {len(tasks):,} tasks; {MAX_TASKS:,} are allowed."
        raise DefinitionInvalid([Problem("$.tasks", "too_many_tasks", sentence)])
    faults = _faults(document)
    unsound = {field_of(problem.path) for problem in faults}
    problems, graph = check_meaning(document, executors=executors, unsound=unsound)
    definition: WorkflowDefinition | None = None
    try:
        definition = WorkflowDefinition.model_validate(readable(document, unsound) if faults else document)
    except ValidationError as error:
        problems = structure_problems(error, document) + problems
    # A field that cannot even be stored is reported as that alone, whatever else is wrong with it.
    problems = faults + [problem for problem in problems if field_of(problem.path) not in unsound]
    if problems or definition is None or graph is None:
        raise DefinitionInvalid(sorted(dict.fromkeys(problems), key=_task_number))
    return CompiledWorkflow(definition, graph, encode(_normalised(definition)), _warnings(document))


def load_compiled(canonical_text: str) -> CompiledWorkflow:
    """Compile the stored text of a version. It was checked when it was published and is trusted now."""
    definition = WorkflowDefinition.model_validate_json(canonical_text)
    keys = [task.key for task in definition.tasks]
    graph = compile_graph(keys, [task.depends_on for task in definition.tasks])
    return CompiledWorkflow(definition, graph, canonical_text)


def _faults(value: JsonValue) -> list[Problem]:
    found = islice(find_faults(value), MAX_PROBLEMS)
    return [Problem(fault.path, fault.code, fault.message) for fault in found]


_TASK = re.compile(r"\$\.tasks\[(\d+)\]")


def _task_number(problem: Problem) -> int:
    match = _TASK.match(problem.path)
    return int(match[1]) if match else -1


def _warnings(document: dict[str, Any]) -> tuple[Problem, ...]:
    defaulted = [task["key"] for task in document["tasks"] if "executor" not in task]
    if not defaulted:
        return ()
    named = ", ".join(defaulted[:_NAMED_IN_WARNING])
    if len(defaulted) > _NAMED_IN_WARNING:
        named += f" and {len(defaulted) - _NAMED_IN_WARNING:,} more"
    sentence = f"No executor is named for {named}: the default, mock, does no real work."
    return (Problem("$.tasks", "executor_defaulted", sentence),)


# --- the two written forms -----------------------------------------------------------------------

_WORKFLOW_FIELDS = {name: field.get_default() for name, field in WorkflowDefinition.model_fields.items()}
_TASK_FIELDS = {
    name: field.get_default(call_default_factory=True, validated_data={})
    for name, field in TaskDefinition.model_fields.items()
}
_RETRY_FIELDS = {name: field.get_default() for name, field in RetryPolicy.model_fields.items()}


def _normalised(definition: WorkflowDefinition) -> dict[str, Any]:
    """Every default filled in; only an absent input, and absent params, stay absent."""
    return _written(definition, _WORKFLOW_FIELDS) | {
        "tasks": [
            _written(task, _TASK_FIELDS)
            | {"retry": {name: getattr(task.retry, name) for name in _RETRY_FIELDS}}
            for task in definition.tasks
        ]
    }


def _minimal(definition: WorkflowDefinition) -> dict[str, Any]:
    """Only what differs from the defaults."""
    return _differing(definition, _WORKFLOW_FIELDS) | {
        "tasks": [
            _differing(task, _TASK_FIELDS) | {"retry": _differing(task.retry, _RETRY_FIELDS)}
            for task in definition.tasks
        ]
    }


def _written(part: WorkflowDefinition | TaskDefinition, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, default in fields.items()
        if (value := getattr(part, name)) is not None or default is not None
    }


def _differing(part: BaseModel, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, default in fields.items() if (value := getattr(part, name)) != default}


def check_params(compiled: CompiledWorkflow, params: JsonValue) -> None:
    """Check the parameters of a run (an object; None counts as an empty one); raises `ParamsInvalid`.

    Without a schema any object passes. The schema's defaults are not filled in.
    """
    value = {} if params is None else params
    problems = _faults(value)
    if problems:
        raise ParamsInvalid(problems)
    if not isinstance(value, dict):
        raise ParamsInvalid([Problem("$", "wrong_type", "Run parameters are an object.")])
    if len(encode(value).encode()) > MAX_PARAMS_BYTES:
        raise ParamsInvalid([Problem("$", "too_large", f"More than {MAX_PARAMS_BYTES:,} bytes of JSON.")])
    if compiled.params_validator is not None:
        problems = check_value(compiled.params_validator, value)
        if problems:
            raise ParamsInvalid(problems)
