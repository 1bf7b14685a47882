"""Whole documents: every problem at once, references, what is stored and hashed, and the largest ones."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.strategies import ANYTHING, JSON, dags, task, workflow
from workflows.kernel.canonical import dumps, loads
from workflows.kernel.definition import compile_workflow, load_compiled
from workflows.kernel.errors import MAX_PROBLEMS, DefinitionInvalid
from workflows.kernel.format import (
    MAX_TIMEOUT_MS,
    RetryPolicy,
)

Found = list[tuple[str, str]]


def problems(document: Any, **options: Any) -> Found:
    with pytest.raises(DefinitionInvalid) as refused:
        compile_workflow(document, **options)
    return [(problem.path, problem.code) for problem in refused.value.problems]


# --- everything at once --------------------------------------------------------------------------


def test_structure_does_not_hide_meaning_nor_meaning_structure() -> None:
    document = workflow(
        task("a", depends_on=["b"]),
        task("b", depends_on=["a"], retry={"max_attempts": "3"}),
        task("c", timeout_ms=1, depends_on=["nope"]),
        task("c", executor="rocket"),
        task("d", input={"v": {"$from": "tasks.e.output"}, "w": "\x00"}),
        task("e", input={"v": {"$from": "tasks.c.output"}, "w": {"$from": "tasks.none.output"}}, extra=1),
        "no task",
        task("f", action=" ", input={"v": {"$from": "params.undeclared"}}),
        concurrency=0,
        params={"properties": {"x": {}}, "additionalProperties": False},
    )
    assert problems(document, executors=["python", "mock"]) == [
        ("$.concurrency", "out_of_range"),
        ("$.tasks[0].depends_on", "dependency_cycle"),
        ("$.tasks[1].retry.max_attempts", "wrong_type"),
        ("$.tasks[2].timeout_ms", "out_of_range"),
        ("$.tasks[2].depends_on[0]", "unknown_dependency"),
        ("$.tasks[3].key", "duplicate_key"),
        ("$.tasks[3].executor", "unknown_executor"),
        ("$.tasks[4].input.w", "invalid_text"),
        ("$.tasks[5].extra", "unknown_field"),
        ('$.tasks[5].input.w["$from"]', "unknown_reference"),
        ("$.tasks[6]", "wrong_type"),
        ("$.tasks[7].action", "blank"),
        ('$.tasks[7].input.v["$from"]', "unknown_reference"),
    ]


def test_the_list_of_problems_is_cut_and_says_so() -> None:
    document = workflow(*(task(f"t{n}", timeout_ms=1) for n in range(1_000)))
    with pytest.raises(DefinitionInvalid) as refused:
        compile_workflow(document)
    listed = refused.value.problems
    assert len(listed) == MAX_PROBLEMS + 1
    assert (listed[-1].path, listed[-1].code) == ("$", "more_problems")
    assert listed[-1].message == "800 further problems are not listed."
    assert [problem.path for problem in listed[:2]] == ["$.tasks[0].timeout_ms", "$.tasks[1].timeout_ms"]


def test_too_many_tasks_are_refused_without_looking_at_one() -> None:
    class Untouchable(dict[str, Any]):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"a task was looked at: {name}")

    tasks: list[Any] = [Untouchable() for _ in range(10_001)]
    assert problems({"id": "a", "concurrency": 1, "tasks": tasks}) == [("$.tasks", "too_many_tasks")]


def test_ten_thousand_tasks_are_welcome_and_quick() -> None:
    tasks = [task(f"t{n}", depends_on=[f"t{n - 1}"] if n else [], input={"n": n}) for n in range(10_000)]
    started = time.process_time()
    compiled = compile_workflow(workflow(*tasks))
    assert (
        time.process_time() - started < 3.0
    )  # processor time: ten times what it takes; quadratic would be minutes
    assert compiled.graph.in_degrees[9_999] == 1


def test_ten_thousand_references_to_a_distant_ancestor_are_checked_in_one_walk() -> None:
    tasks = [
        task(
            f"t{n}",
            depends_on=[f"t{n - 1}"] if n else [],
            input={"v": {"$from": "tasks.t0.output"}} if n else {},
        )
        for n in range(10_000)
    ]
    started = time.process_time()
    assert len(compile_workflow(workflow(*tasks)).references) == 9_999
    assert time.process_time() - started < 5.0


def test_the_number_of_dependencies_is_bounded() -> None:
    wide = [f"t{n}" for n in range(1_001)]
    tasks = [task(key) for key in wide] + [task(f"u{n}", depends_on=wide) for n in range(1_000)]
    assert problems(workflow(*tasks)) == [("$.tasks", "too_many_dependencies")]


def test_every_separate_cycle_is_named_from_task_to_task() -> None:
    document = workflow(
        task("a", depends_on=["c"]),
        task("b", depends_on=["a"]),
        task("c", depends_on=["b"]),
        task("x", depends_on=["x"]),
        task("behind", depends_on=["a"]),
    )
    with pytest.raises(DefinitionInvalid) as refused:
        compile_workflow(document)
    assert [problem.message for problem in refused.value.problems] == [
        "Tasks wait for each other: a -> c -> b -> a.",
        "Tasks wait for each other: x -> x.",
    ]


def test_unknown_executors_are_refused_with_the_known_ones() -> None:
    with pytest.raises(DefinitionInvalid, match="known: mock, python") as refused:
        compile_workflow(workflow(task("a", executor="pyhton")), executors={"python", "mock"})
    assert [problem.code for problem in refused.value.problems] == ["unknown_executor"]
    assert compile_workflow(workflow(task("a", executor="anything-goes")))


def test_messages_hold_nothing_that_cannot_be_sent() -> None:
    evil = "\x00\ud800\u202e" + "k" * 10_000
    document = workflow(task(evil), task(evil, executor=evil, depends_on=[evil * 2, evil]), **{evil: 1})
    with pytest.raises(DefinitionInvalid) as refused:
        compile_workflow(document, executors=["python"])
    for problem in refused.value.problems:
        dumps({"path": problem.path, "message": problem.message})
        assert len(problem.message) + len(problem.path) < 500


# --- references ----------------------------------------------------------------------------------


def reference_problems(text: Any, **fields: Any) -> Found:
    document = workflow(
        task("root"),
        task("middle", depends_on=["root"]),
        task("leaf", depends_on=["middle"], input={"v": {"$from": text}}),
        task("aside"),
        **fields,
    )
    return problems(document)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("tasks.aside.output", "reference_not_ancestor"),
        ("tasks.leaf.output", "reference_not_ancestor"),
        ("tasks.nobody.output.x", "unknown_reference"),
        ("params.other", "unknown_reference"),
        ("params.other.deeper", "unknown_reference"),
        ("task.root.output", "invalid_reference"),
        (7, "invalid_reference"),
    ],
)
def test_a_reference_that_can_never_work_is_refused_at_publish(text: Any, code: str) -> None:
    schema = {"properties": {"city": {}}, "additionalProperties": False, "patternProperties": {"^x_": {}}}
    assert reference_problems(text, params=schema) == [('$.tasks[2].input.v["$from"]', code)]


@pytest.mark.parametrize(
    "text", ["tasks.root.output", "tasks.middle.output.a.0", "params", "params.city.name", "params.x_1"]
)
@pytest.mark.parametrize("position_of_reference", [{}, {"deep": [1]}])
def test_references_to_ancestors_and_declared_params_pass(text: str, position_of_reference: Any) -> None:
    schema = {"properties": {"city": {}}, "additionalProperties": False, "patternProperties": {"^x_": {}}}
    given_input = {"v": [position_of_reference, {"$from": text}]}
    document = workflow(
        task("leaf", depends_on=["middle"], input=given_input),
        task("middle", depends_on=["root"]),
        task("root"),
        params=schema,
    )
    compiled = compile_workflow(document)
    assert [str(reference) for reference in compiled.references[0]] == [text]
    assert load_compiled(compiled.canonical).references == compiled.references


@pytest.mark.parametrize(
    "schema", [None, {}, {"properties": {"city": {}}}, {"additionalProperties": False}, {"type": "object"}]
)
def test_a_schema_that_is_not_closed_allows_any_param(schema: Any) -> None:
    document = workflow(task("a", input={"v": {"$from": "params.other"}}), params=schema)
    assert compile_workflow(document).references[0][0].path == ("other",)


# --- what is stored and hashed -------------------------------------------------------------------


def test_the_stored_form_has_every_default_filled_in() -> None:
    compiled = compile_workflow({"id": "w", "concurrency": 1, "tasks": [{"key": "a", "action": "x"}]})
    assert json.loads(compiled.canonical) == {
        "id": "w",
        "concurrency": 1,
        "tasks": [
            {
                "key": "a",
                "executor": "mock",
                "action": "x",
                "depends_on": [],
                "retry": {
                    "max_attempts": 1,
                    "interval_ms": 0,
                    "backoff": "fixed",
                    "multiplier": 2.0,
                    "max_interval_ms": None,
                    "jitter": 0.0,
                    "non_retryable": [],
                },
                "timeout_ms": 300_000,
                "requires": {},
            }
        ],
    }
    assert compiled.canonical == dumps(json.loads(compiled.canonical))


SPARSE = {"id": "w", "concurrency": 1, "tasks": [{"key": "a", "action": "x"}]}
SAME: list[dict[str, Any]] = [
    {"executor": "mock"},
    {"depends_on": []},
    {"timeout_ms": 300_000},
    {"retry": {}},
    {"retry": {"max_attempts": 0}},
    {"retry": {"multiplier": 2, "jitter": 0}},
    {"requires": {}, "input": None},
]
OTHER: list[dict[str, Any]] = [
    {"executor": "python"},
    {"timeout_ms": 300_001},
    {"input": {}},
    {"retry": {"max_attempts": 2}},
    {"requires": {"gpu": "a100"}},
    {"action": "x "},
]


def _digest(fields: dict[str, Any]) -> bytes:
    document = copy.deepcopy(SPARSE)
    document["tasks"][0] |= fields  # type: ignore[index] # a document is a plain dict
    return compile_workflow(document).digest  # type: ignore[arg-type] # as above


@pytest.mark.parametrize("fields", SAME)
def test_written_out_defaults_hash_like_absent_ones(fields: dict[str, Any]) -> None:
    assert _digest(fields) == _digest({})


def test_whatever_differs_from_the_defaults_takes_part_in_the_hash() -> None:
    digests = [_digest(fields) for fields in [{}, *OTHER]]
    assert len(set(digests)) == len(digests)


def test_a_stored_version_hashes_like_the_document_it_came_from() -> None:
    compiled = compile_workflow(workflow(task("a", retry={"max_attempts": 3}), params={"type": "object"}))
    assert load_compiled(compiled.canonical).digest == compiled.digest
    assert compile_workflow(json.loads(compiled.canonical)).digest == compiled.digest
    assert len(compiled.digest) == 32


def test_the_digest_of_a_definition_never_changes() -> None:
    """Idempotency records and stored versions outlive this code: a changed figure here breaks them."""
    document = workflow(task("a", input={"n": 2**70}), task("b", depends_on=["a"], retry={"max_attempts": 3}))
    assert compile_workflow(document).digest.hex() == PINNED


PINNED = "c8c96a353b8f89ae3ec6dfbc3c70c87b24e0d2b6b37d9afafdbf652ba7777bf0"


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    keys, depends_on = draw(dags(max_tasks=6))
    optional = {
        "input": st.dictionaries(st.text("abc", max_size=3), JSON, max_size=3),
        "timeout_ms": st.integers(100, MAX_TIMEOUT_MS),
        "executor": st.sampled_from(["mock", "python"]),
        "requires": st.dictionaries(st.sampled_from(["gpu", "zone"]), st.text("xyz", max_size=3)),
        "retry": st.fixed_dictionaries(
            {}, optional={"max_attempts": st.integers(0, 9), "jitter": st.floats(0, 1)}
        ),
    }
    tasks = [
        {"key": key, "action": "x", "depends_on": names} | draw(st.fixed_dictionaries({}, optional=optional))
        for key, names in zip(keys, depends_on, strict=True)
    ]
    return {"id": "w", "concurrency": draw(st.integers(1, 9)), "tasks": tasks}


@given(documents())
def test_normalising_is_idempotent_and_loading_agrees_with_compiling(document: dict[str, Any]) -> None:
    compiled = compile_workflow(document)
    assert loads(compiled.canonical) == json.loads(compiled.canonical)
    again = compile_workflow(loads(compiled.canonical))
    loaded = load_compiled(compiled.canonical)
    assert again.canonical == loaded.canonical == compiled.canonical
    assert again.definition == loaded.definition == compiled.definition
    assert again.graph == loaded.graph == compiled.graph
    assert again.digest == loaded.digest == compiled.digest
    for position, given_task in enumerate(document["tasks"]):
        assert compiled.definition.tasks[position].input == given_task.get("input")


@given(documents(), st.data())
def test_any_damage_is_a_refusal_and_never_another_error(
    document: dict[str, Any], data: st.DataObject
) -> None:
    place: Any = data.draw(st.sampled_from([document, *document["tasks"]]))
    fields = ["id", "tasks", "key", "input", "depends_on", "retry", "params", "requires", "zz", "\ud800"]
    place[data.draw(st.sampled_from(fields))] = data.draw(ANYTHING)
    try:
        compiled = compile_workflow(document, executors=["mock", "python"])
    except DefinitionInvalid as refused:
        found = refused.problems
    else:
        assert load_compiled(compiled.canonical).definition == compiled.definition
        return
    assert found
    for problem in found:
        assert problem.path.startswith("$")
        dumps([problem.path, problem.code, problem.message])


def test_changing_the_document_afterwards_changes_nothing() -> None:
    document = workflow(
        task("a", input={"deep": {"list": [1]}}, requires={"gpu": "x"}, retry={"non_retryable": ["q"]}),
        params={"properties": {"p": {"enum": [1]}}},
    )
    compiled = compile_workflow(document)
    before = compiled.definition.model_copy(deep=True)
    document["tasks"][0]["input"]["deep"]["list"].append(2)
    document["tasks"][0]["requires"]["gpu"] = "y"
    document["tasks"][0]["retry"]["non_retryable"].append("r")
    document["params"]["properties"]["p"]["enum"].append(2)
    document["tasks"].append(1)
    assert compiled.definition == before


def test_policies_and_definitions_cannot_be_changed() -> None:
    compiled = compile_workflow(workflow(task("a")))
    with pytest.raises(ValueError, match="frozen"):
        compiled.definition.tasks[0].timeout_ms = 1  # type: ignore[misc] # the point of the test
    with pytest.raises(ValueError, match="frozen"):
        RetryPolicy().max_attempts = 2  # type: ignore[misc] # the point of the test


def test_tasks_that_leave_the_executor_out_are_warned_about_once() -> None:
    tasks = [{"key": f"t{n}", "action": "x"} for n in range(12)]
    (warning,) = compile_workflow(workflow(*tasks, task("named"))).warnings
    assert (warning.path, warning.code) == ("$.tasks", "executor_defaulted")
    assert "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more" in warning.message
    assert compile_workflow(workflow(task("a", executor="mock"))).warnings == ()
