"""The format, field by field: what is refused, where, under which code, and what just passes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernel.strategies import task, workflow
from workflows.kernel.definition import compile_workflow, load_compiled
from workflows.kernel.errors import DefinitionInvalid
from workflows.kernel.format import (
    MAX_ATTEMPTS,
    MAX_CONCURRENCY,
    MAX_INTERVAL_MS,
    MAX_TIMEOUT_MS,
)

Found = list[tuple[str, str]]


def problems(document: Any, **options: Any) -> Found:
    with pytest.raises(DefinitionInvalid) as refused:
        compile_workflow(document, **options)
    return [(problem.path, problem.code) for problem in refused.value.problems]


FIELDS: list[tuple[dict[str, Any], Found]] = [
    ({"id": 1}, [("$.id", "wrong_type")]),
    ({"id": ""}, [("$.id", "invalid_format")]),
    ({"id": "a" * 65}, [("$.id", "invalid_format")]),
    ({"id": "with space"}, [("$.id", "invalid_format")]),
    ({"id": "a\n"}, [("$.id", "invalid_format")]),
    ({"id": None}, [("$.id", "wrong_type")]),
    ({"concurrency": 0}, [("$.concurrency", "out_of_range")]),
    ({"concurrency": -1}, [("$.concurrency", "out_of_range")]),
    ({"concurrency": "1"}, [("$.concurrency", "wrong_type")]),
    ({"concurrency": True}, [("$.concurrency", "wrong_type")]),
    ({"concurrency": 1.0}, [("$.concurrency", "wrong_type")]),
    ({"concurrency": MAX_CONCURRENCY + 1}, [("$.concurrency", "out_of_range")]),
    ({"concurrency": 10**999}, [("$.concurrency", "out_of_range")]),
    ({"concurrency": 10**1000}, [("$.concurrency", "integer_too_long")]),
    ({"concurrency": float("nan")}, [("$.concurrency", "invalid_number")]),
    ({"tasks": []}, [("$.tasks", "too_few")]),
    ({"tasks": {}}, [("$.tasks", "wrong_type")]),
    ({"tasks": "abc"}, [("$.tasks", "wrong_type")]),
    ({"tasks": [None, "a"]}, [("$.tasks[0]", "wrong_type"), ("$.tasks[1]", "wrong_type")]),
    ({"extra": 1}, [("$.extra", "unknown_field")]),
    ({"Id": 1}, [("$.Id", "unknown_field")]),
    ({"bad\x00": 1}, [('$["bad\\u0000"]', "invalid_text")]),
    ({"params": 1}, [("$.params", "wrong_type")]),
]


@pytest.mark.parametrize(("fields", "found"), FIELDS)
def test_a_wrong_workflow_field_is_refused(fields: dict[str, Any], found: Found) -> None:
    assert problems(workflow(task("a")) | fields) == found


TASK_FIELDS: list[tuple[dict[str, Any], Found]] = [
    ({"key": "A"}, [("key", "invalid_format")]),
    ({"key": "a.b"}, [("key", "invalid_format")]),
    ({"key": "a[0]"}, [("key", "invalid_format")]),
    ({"key": 5}, [("key", "wrong_type")]),
    ({"executor": "Python"}, [("executor", "invalid_format")]),
    ({"executor": "9a"}, [("executor", "invalid_format")]),
    ({"executor": "a" * 65}, [("executor", "invalid_format")]),
    ({"executor": None}, [("executor", "wrong_type")]),
    ({"action": ""}, [("action", "blank")]),
    ({"action": " \t\n"}, [("action", "blank")]),
    ({"action": "\u00a0\u2003"}, [("action", "blank")]),
    ({"action": "a" * 257}, [("action", "too_long")]),
    ({"action": 1}, [("action", "wrong_type")]),
    ({"input": []}, [("input", "wrong_type")]),
    ({"input": "text"}, [("input", "wrong_type")]),
    ({"input": {"a": [1, float("inf")]}}, [("input.a[1]", "invalid_number")]),
    ({"input": {"a": "\ud800", "b": "\x00"}}, [("input.a", "invalid_text"), ("input.b", "invalid_text")]),
    ({"input": {"\x00": 1}}, [('input["\\u0000"]', "invalid_text")]),
    ({"input": {"a": 10**1000}}, [("input.a", "integer_too_long")]),
    ({"input": {"a": "x" * 65_536}}, [("input", "too_large")]),
    ({"input": {"a": {1: 2}}}, [('input.a["<int>"]', "not_json")]),
    ({"depends_on": "a"}, [("depends_on", "wrong_type")]),
    ({"depends_on": None}, [("depends_on", "wrong_type")]),
    ({"depends_on": {"a": 1}}, [("depends_on", "wrong_type")]),
    ({"depends_on": [1]}, [("depends_on[0]", "wrong_type")]),
    ({"depends_on": ["zz"]}, [("depends_on[0]", "unknown_dependency")]),
    ({"depends_on": ["b", "b"]}, [("depends_on[1]", "duplicate_dependency")]),
    ({"depends_on": ["a"]}, [("depends_on", "dependency_cycle")]),
    ({"timeout_ms": 99}, [("timeout_ms", "out_of_range")]),
    ({"timeout_ms": MAX_TIMEOUT_MS + 1}, [("timeout_ms", "out_of_range")]),
    ({"timeout_ms": "1000"}, [("timeout_ms", "wrong_type")]),
    ({"timeout_ms": False}, [("timeout_ms", "wrong_type")]),
    ({"timeout_ms": None}, [("timeout_ms", "wrong_type")]),
    ({"retry": None}, [("retry", "wrong_type")]),
    ({"retry": {"max_attempts": -1}}, [("retry.max_attempts", "out_of_range")]),
    ({"retry": {"max_attempts": MAX_ATTEMPTS + 1}}, [("retry.max_attempts", "out_of_range")]),
    ({"retry": {"max_attempts": True}}, [("retry.max_attempts", "wrong_type")]),
    ({"retry": {"interval_ms": -1}}, [("retry.interval_ms", "out_of_range")]),
    ({"retry": {"interval_ms": MAX_INTERVAL_MS + 1}}, [("retry.interval_ms", "out_of_range")]),
    ({"retry": {"backoff": "linear"}}, [("retry.backoff", "invalid_choice")]),
    ({"retry": {"backoff": 1}}, [("retry.backoff", "invalid_choice")]),
    ({"retry": {"multiplier": 0.5}}, [("retry.multiplier", "out_of_range")]),
    ({"retry": {"multiplier": 1001}}, [("retry.multiplier", "out_of_range")]),
    ({"retry": {"multiplier": "2"}}, [("retry.multiplier", "wrong_type")]),
    ({"retry": {"multiplier": True}}, [("retry.multiplier", "wrong_type")]),
    ({"retry": {"multiplier": float("inf")}}, [("retry.multiplier", "invalid_number")]),
    ({"retry": {"multiplier": 10**900}}, [("retry.multiplier", "wrong_type")]),
    ({"retry": {"jitter": 1.01}}, [("retry.jitter", "out_of_range")]),
    ({"retry": {"jitter": -0.1}}, [("retry.jitter", "out_of_range")]),
    ({"retry": {"interval_ms": 2, "max_interval_ms": 1}}, [("retry.max_interval_ms", "out_of_range")]),
    ({"retry": {"max_interval_ms": "9"}}, [("retry.max_interval_ms", "wrong_type")]),
    ({"retry": {"non_retryable": "x"}}, [("retry.non_retryable", "wrong_type")]),
    ({"retry": {"non_retryable": ["ok", " "]}}, [("retry.non_retryable[1]", "blank")]),
    ({"retry": {"non_retryable": ["x" * 129]}}, [("retry.non_retryable[0]", "too_long")]),
    ({"retry": {"non_retryable": ["x"] * 65}}, [("retry.non_retryable", "too_many")]),
    ({"retry": {"attempts": 3}}, [("retry.attempts", "unknown_field")]),
    ({"requires": []}, [("requires", "wrong_type")]),
    ({"requires": {"gpu": True}}, [("requires.gpu", "wrong_type")]),
    ({"requires": {"a b": "x"}}, [('requires["a b"]', "invalid_format")]),
    ({"requires": {"zone": "x" * 65}}, [("requires.zone", "invalid_format")]),
    ({"requires": {"zone": "x\ny"}}, [("requires.zone", "invalid_format")]),
    ({"requires": {f"l{n}": "x" for n in range(17)}}, [("requires", "too_many")]),
    ({"timeout": 1}, [("timeout", "unknown_field")]),
]


@pytest.mark.parametrize(("fields", "found"), TASK_FIELDS)
def test_a_wrong_task_field_is_refused(fields: dict[str, Any], found: Found) -> None:
    document = workflow(task("b"), task("a") | fields)
    assert problems(document) == [(f"$.tasks[1].{path}", code) for path, code in found]


@pytest.mark.parametrize("field", ["id", "concurrency", "tasks"])
def test_a_missing_workflow_field_is_named(field: str) -> None:
    document = workflow(task("a"))
    del document[field]
    assert problems(document) == [(f"$.{field}", "missing")]


@pytest.mark.parametrize("field", ["key", "action"])
def test_a_missing_task_field_is_named(field: str) -> None:
    broken = task("a")
    del broken[field]
    assert problems(workflow(broken)) == [(f"$.tasks[0].{field}", "missing")]


@pytest.mark.parametrize("document", [None, [], "text", 1, True])
def test_a_document_that_is_no_object_is_refused(document: Any) -> None:
    assert problems(document) == [("$", "wrong_type")]


EDGES: list[dict[str, Any]] = [
    {"key": "-"},
    {"key": "_" * 64},
    {"executor": "a" * 64},
    {"action": "a" * 256},
    {"action": " padded "},
    {"input": None},
    {"input": {}},
    {"input": {"a": "x" * (65_536 - len('{"a":""}'))}},
    {"input": {"a": "\xe9" * ((65_536 - len('{"a":""}')) // 2)}},
    {"input": {"n": int("9" * 1000)}},
    {"timeout_ms": 100},
    {"timeout_ms": MAX_TIMEOUT_MS},
    {"retry": {}},
    {"retry": {"max_attempts": 0}},
    {
        "retry": {
            "max_attempts": MAX_ATTEMPTS,
            "interval_ms": MAX_INTERVAL_MS,
            "max_interval_ms": MAX_INTERVAL_MS,
        }
    },
    {"retry": {"multiplier": 1, "jitter": 1, "max_interval_ms": None}},
    {"requires": {"topology.example/zone-1": ""}},
    {"requires": {f"l{n}": "\u6771\u4eac" for n in range(16)}},
]


@pytest.mark.parametrize("fields", EDGES)
def test_values_at_the_limit_pass_and_survive_storing(fields: dict[str, Any]) -> None:
    document = workflow(task("a") | fields)
    compiled = compile_workflow(document)
    loaded = load_compiled(compiled.canonical)
    assert loaded.definition == compiled.definition
    assert loaded.definition.tasks[0].input == document["tasks"][0].get("input")
