"""The schema of run parameters, and parameters against it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernel.strategies import task, workflow
from workflows.kernel.definition import CompiledWorkflow, check_params, compile_workflow
from workflows.kernel.errors import MAX_PROBLEMS, DefinitionInvalid, ParamsInvalid

Found = list[tuple[str, str]]


def with_schema(schema: Any) -> CompiledWorkflow:
    return compile_workflow(workflow(task("a"), params=schema))


def schema_problems(schema: Any) -> Found:
    with pytest.raises(DefinitionInvalid) as refused:
        with_schema(schema)
    return [(problem.path, problem.code) for problem in refused.value.problems]


def params_problems(schema: Any, params: Any) -> Found:
    with pytest.raises(ParamsInvalid) as refused:
        check_params(with_schema(schema), params)
    return [(problem.path, problem.code) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ([], [("$.params", "wrong_type")]),
        (True, [("$.params", "wrong_type")]),
        ({"type": "objekt"}, [("$.params.type", "invalid_schema")]),
        (
            {"properties": {"a": {"minimum": "1"}, "b": {"type": 3}}},
            [
                ("$.params.properties.a.minimum", "invalid_schema"),
                ("$.params.properties.b.type", "invalid_schema"),
            ],
        ),
        ({"required": "a"}, [("$.params.required", "invalid_schema")]),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, [('$.params["$schema"]', "invalid_schema")]),
        ({"$ref": "https://example.org/s"}, [('$.params["$ref"]', "remote_reference")]),
        (
            {"properties": {"a": {"items": {"$ref": "other.json#/x"}}}},
            [('$.params.properties.a.items["$ref"]', "remote_reference")],
        ),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, [('$.params.properties.a["$ref"]', "invalid_schema")]),
        (
            {"allOf": [{"$dynamicRef": "file:///etc/passwd"}]},
            [('$.params.allOf[0]["$dynamicRef"]', "remote_reference")],
        ),
        (
            {"$defs": {"b": {"$id": "https://example.org/"}}},
            [('$.params["$defs"].b["$id"]', "invalid_schema")],
        ),
        ({"properties": {"a": {"pattern": "("}}}, [("$.params.properties.a.pattern", "invalid_schema")]),
        ({"patternProperties": {"[": {}}}, [("$.params.patternProperties", "invalid_schema")]),
        ({"$ref": "#"}, [("$.params", "invalid_schema")]),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, [("$.params", "invalid_schema")]),
        ({"const": "x" * 65_536}, [("$.params", "too_large")]),
        ({"const": ["\x00"], "type": "objekt"}, [("$.params.const[0]", "invalid_text")]),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_publish(schema: Any, found: Found) -> None:
    assert schema_problems(schema) == found


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"properties": {"$ref": {"type": "string"}, "$id": {"const": {"$ref": "https://example.org"}}}},
        {"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
        {"$defs": {"n": {"$anchor": "node"}}, "properties": {"a": {"$ref": "#node"}}},
        {"properties": {"a": True, "b": False}, "items": False},
    ],
)
def test_local_references_and_names_that_look_like_keywords_are_fine(schema: Any) -> None:
    check_params(with_schema(schema), {})


SCHEMA = {
    "type": "object",
    "required": ["city", "count"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "count": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["fast", "safe"]},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}},
    },
}


def test_all_errors_come_at_once_with_their_paths() -> None:
    params = {"city": "O", "tags": ["a", 1, 2], "mode": "slow", "x": 1, "y z": 2}
    assert sorted(params_problems(SCHEMA, params)) == [
        ("$.city", "invalid_param"),
        ("$.count", "missing"),
        ("$.mode", "invalid_param"),
        ("$.tags[1]", "wrong_type"),
        ("$.tags[2]", "wrong_type"),
        ("$.x", "unknown_field"),
        ('$["y z"]', "unknown_field"),
    ]


def test_every_missing_parameter_is_named_once() -> None:
    assert params_problems(SCHEMA, None) == [("$.city", "missing"), ("$.count", "missing")]


def test_messages_do_not_repeat_what_was_sent() -> None:
    secret = "hunter2-" * 20
    with pytest.raises(ParamsInvalid) as refused:
        check_params(with_schema(SCHEMA), {"city": [secret], "count": 1, "mode": secret})
    text = str(refused.value) + "".join(problem.message for problem in refused.value.problems)
    assert "hunter2" not in text
    assert "Must be of type string." in text


@pytest.mark.parametrize("params", [None, {}, {"anything": [1, {"goes": None}]}])
def test_without_a_schema_any_object_passes(params: Any) -> None:
    check_params(compile_workflow(workflow(task("a"))), params)


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ([], [("$", "wrong_type")]),
        ("text", [("$", "wrong_type")]),
        ({"a": "\x00", "b": [float("nan")]}, [("$.a", "invalid_text"), ("$.b[0]", "invalid_number")]),
        ({"a": "x" * 65_536}, [("$", "too_large")]),
        ({"a": 10**1000}, [("$.a", "integer_too_long")]),
    ],
)
def test_params_that_cannot_be_stored_are_refused_with_or_without_a_schema(params: Any, found: Found) -> None:
    with pytest.raises(ParamsInvalid) as refused:
        check_params(compile_workflow(workflow(task("a"))), params)
    assert sorted((problem.path, problem.code) for problem in refused.value.problems) == found


def test_the_number_of_listed_problems_is_bounded() -> None:
    found = params_problems({"additionalProperties": {"type": "string"}}, {f"p{n}": n for n in range(500)})
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == ("$", "more_problems")


def test_a_recursive_schema_that_outgrows_the_stack_is_a_refusal() -> None:
    node: dict[str, Any] = {"properties": {"n": {"$ref": "#/$defs/n"}}}
    for _ in range(5):
        node = {"allOf": [node]}  # each level of the value takes many levels of the validator
    schema = {"$defs": {"n": node}, "$ref": "#/$defs/n"}
    deep: dict[str, Any] = {}
    for _ in range(90):
        deep = {"n": deep}
    assert params_problems(schema, deep) == [("$", "too_deep")]
    check_params(with_schema(schema), {"n": {"n": {"n": {}}}})
