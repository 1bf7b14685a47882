"""The pages about the format say what the code does."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import workflows.kernel
from workflows.kernel import canonical, references, structure
from workflows.kernel import format as limits
from workflows.kernel.definition import compile_workflow, definition_schema
from workflows.kernel.params import build_validator

KERNEL = Path(workflows.kernel.__file__).parent
DOCS = KERNEL.parents[1] / "docs"
PAGE = (DOCS / "workflow-format.md").read_text()
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
WORKFLOWS = [example for example in EXAMPLES if "tasks" in example]

CODE_ARGUMENT = {"Problem": 1, "_refuse": 2, "_bad_reference": 1}
"""Which positional argument of each call is the code of a problem."""


def test_the_written_schema_is_current() -> None:
    written = (DOCS / "workflow.schema.json").read_text()
    remedy = "run: python -m workflows.kernel.schema > docs/workflow.schema.json"
    assert written == json.dumps(definition_schema(), indent=2) + "\n", remedy


def test_the_examples_compile_and_satisfy_the_schema() -> None:
    assert WORKFLOWS
    validator = build_validator(definition_schema())
    for example in WORKFLOWS:
        compile_workflow(example)
        assert validator.is_valid(example)


@pytest.mark.parametrize("damage", [{"concurrency": 0}, {"extra": 1}, {"tasks": []}, {"id": "A"}])
def test_the_schema_refuses_what_the_format_refuses(damage: dict[str, object]) -> None:
    assert not build_validator(definition_schema()).is_valid(WORKFLOWS[0] | damage)


def _codes_in_source() -> set[str]:
    codes = {code for code, _ in [*structure._CODES.values(), *structure._PATTERNS.values()]}
    codes |= set(canonical._MESSAGES)
    for path in KERNEL.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                index = CODE_ARGUMENT.get(name)
                if index is not None and len(node.args) > index:
                    argument = node.args[index]
                    if isinstance(argument, ast.Constant):
                        codes.add(str(argument.value))
    return codes - {"invalid"}  # the answer to a kind of refusal that the library may add one day


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    listed = set(re.findall(r"^\| `([a-z_]+)` \| [^|]*\|$", PAGE.partition("## Problems")[2], re.MULTILINE))
    in_source = _codes_in_source() | {"invalid_param"}
    in_source -= {
        "not_unlocked",
        "not_skipped",
        "started_too_early",
        "skipped_without_cause",
    }  # of reconciliation
    assert listed == in_source


@pytest.mark.parametrize(
    "limit",
    [
        limits.MAX_TASKS,
        limits.MAX_CONCURRENCY,
        limits.MAX_DEPENDENCIES,
        limits.MAX_INPUT_BYTES,
        limits.MAX_PARAMS_BYTES,
        limits.MAX_PARAMS_SCHEMA_BYTES,
        limits.MAX_ATTEMPTS,
        limits.MAX_TIMEOUT_MS,
        limits.MAX_INTERVAL_MS,
        limits.DEFAULT_TIMEOUT_MS,
        limits.MAX_ACTION_CHARACTERS,
        limits.MAX_ERROR_CODE_CHARACTERS,
        canonical.MAX_INTEGER_DIGITS,
        canonical.MAX_DEPTH,
        references.MAX_REFERENCES,
        references.MAX_REFERENCE_CHARACTERS,
    ],
)
def test_every_limit_is_on_the_page(limit: int) -> None:
    assert re.search(rf"\b{limit:,}\b", PAGE)


def test_every_field_is_on_the_page() -> None:
    for model in (limits.WorkflowDefinition, limits.TaskDefinition, limits.RetryPolicy):
        for name in model.model_fields:
            assert f"| `{name}` |" in PAGE


def test_every_integer_fits_a_32_bit_column() -> None:
    for limit in (limits.MAX_CONCURRENCY, limits.MAX_ATTEMPTS, limits.MAX_TIMEOUT_MS, limits.MAX_INTERVAL_MS):
        assert limit < 2**31
