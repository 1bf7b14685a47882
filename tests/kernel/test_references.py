"""References in inputs: their form, where they stand, what they lead to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.kernel.strategies import JSON
from workflows.kernel.errors import InputTooLarge, InputUnresolvable, ReferencesInvalid
from workflows.kernel.references import Reference, find_references, parse_reference, resolve


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("params", Reference("params", None, ())),
        ("params.a", Reference("params", None, ("a",))),
        ("params.a.0.b c", Reference("params", None, ("a", 0, "b c"))),
        ("tasks.load-1.output", Reference("tasks", "load-1", ())),
        ("tasks.x.output.rows.12.name", Reference("tasks", "x", ("rows", 12, "name"))),
        ("tasks.output.output.output", Reference("tasks", "output", ("output",))),
        ("params.007", Reference("params", None, ("007",))),
        ("params.-1", Reference("params", None, ("-1",))),
        ("params." + "9" * 500, Reference("params", None, ("9" * 500,))),
    ],
)
def test_the_two_forms_are_read(text: str, reference: Reference) -> None:
    assert parse_reference(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "param",
        "params.",
        "params..a",
        "params.a.",
        "paramsa",
        " params",
        "params.a\n.b.",
        "tasks",
        "tasks.x",
        "tasks.x.outputs",
        "tasks.X.output",
        "tasks..output",
        "tasks.x.input.a",
        "tasks." + "k" * 65 + ".output",
        "params." + "a" * 1_024,
        None,
        1,
        ["params"],
    ],
)
def test_anything_else_is_no_reference(text: Any) -> None:
    assert parse_reference(text) is None
    with pytest.raises(ReferencesInvalid) as refused:
        find_references({"a": [{"$from": text}]})
    assert [(problem.path, problem.code) for problem in refused.value.problems] == [
        ('$.a[0]["$from"]', "invalid_reference")
    ]


def test_references_are_found_in_document_order_with_their_places() -> None:
    given_input: Any = {
        "b": {"$from": "params.x"},
        "a": [1, {"$from": "tasks.t.output"}, {"deep": {"$from": "params"}}],
        "$from ": "no reference",
    }
    assert [(path, str(reference)) for path, reference in find_references(given_input)] == [
        ("$.b", "params.x"),
        ("$.a[1]", "tasks.t.output"),
        ("$.a[2].deep", "params"),
    ]


def test_a_reference_with_company_is_refused() -> None:
    with pytest.raises(ReferencesInvalid, match="no other key"):
        find_references({"a": {"$from": "params.x", "default": 1}})


PARAMS: Any = {"city": "Oslo", "list": [10, {"0": "zero"}], "none": None, "0": "a key"}
OUTPUTS: Any = {"load": {"rows": [{"id": 9007199254740993}]}, "empty": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("params", PARAMS),
        ("params.city", "Oslo"),
        ("params.list.0", 10),
        ("params.list.1.0", "zero"),
        ("params.0", "a key"),
        ("params.none", None),
        ("tasks.load.output.rows.0.id", 9007199254740993),
        ("tasks.load.output", OUTPUTS["load"]),
        ("tasks.empty.output", None),
    ],
)
def test_a_reference_stands_for_the_whole_value(text: str, value: Any) -> None:
    resolved = resolve({"a": [{"$from": text}], "b": 1}, params=PARAMS, outputs=OUTPUTS)
    assert resolved == {"a": [value], "b": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("params.town", 'no "town" (step 1 of its path), because the value there is an object'),
        ("params.list.2", 'no "2" (step 2 of its path), because the value there is an array'),
        ("params.list.x", "an array without that index"),
        ("params.city.0", "neither an object nor an array"),
        ("tasks.other.output", "task other has no output"),
        ("tasks.empty.output.x", "neither an object nor an array"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InputUnresolvable) as refused:
        resolve({"a": [0, {"$from": text}]}, params=PARAMS, outputs=OUTPUTS)
    assert (refused.value.path, refused.value.reference) == ("$.a[1]", text)
    assert reason in str(refused.value)


def test_the_whole_input_may_be_a_reference_to_an_object() -> None:
    assert resolve({"$from": "params"}, params=PARAMS, outputs={}) == PARAMS
    with pytest.raises(InputUnresolvable, match="must be an object"):
        resolve({"$from": "params.city"}, params=PARAMS, outputs={})


def test_without_params_every_reference_to_them_leads_nowhere() -> None:
    with pytest.raises(InputUnresolvable):
        resolve({"a": {"$from": "params.x"}}, params=None, outputs={})


def test_what_was_substituted_is_not_read_again() -> None:
    """An output that looks like a reference is data: a task cannot make another one read something else."""
    sly: Any = {"load": {"$from": "params.city"}}
    assert resolve({"a": {"$from": "tasks.load.output"}}, params=PARAMS, outputs=sly) == {
        "a": {"$from": "params.city"}
    }


@given(JSON)
def test_an_input_without_references_stays_as_it_is(value: Any) -> None:
    document = {"a": value, "b": [value]}
    if '"$from"' not in repr(document).replace("'", '"'):
        assert resolve(document, params={}, outputs={}) == document
    assert resolve(None, params={}, outputs={}) is None


@given(JSON, JSON)
def test_any_value_can_be_passed_on(param: Any, output: Any) -> None:
    given_input: Any = {"p": {"$from": "params.p"}, "o": {"$from": "tasks.t.output"}}
    assert resolve(given_input, params={"p": param}, outputs={"t": output}) == {"p": param, "o": output}


def test_a_resolved_input_is_bounded_before_it_is_built() -> None:
    big: Any = {"p": "x" * 1_000}
    many: Any = {"a": [{"$from": "params.p"}] * 100}
    exact = len('{"a":[' + ",".join(['"' + "x" * 1_000 + '"'] * 100) + "]}")
    assert resolve(many, params=big, outputs={}, max_bytes=exact)
    for limit in (exact - 1, 5_000):
        with pytest.raises(InputTooLarge):
            resolve(many, params=big, outputs={}, max_bytes=limit)


def test_a_result_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = 1
    for _ in range(99):
        deep = [deep]
    assert resolve({"a": {"$from": "params.p"}}, params={"p": deep}, outputs={})
    with pytest.raises(InputUnresolvable, match="nested too deeply"):
        resolve({"a": [{"$from": "params.p"}]}, params={"p": deep}, outputs={})


def test_the_number_of_references_is_bounded() -> None:
    find_references({"a": [{"$from": "params.p"}] * 1_000})
    with pytest.raises(ReferencesInvalid) as refused:
        find_references({"a": [{"$from": "params.p"}] * 1_001})
    assert [problem.code for problem in refused.value.problems] == ["too_many_references"]
