"""What exceptions, outputs and error texts become."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from workers import outcome
from workers.outcome import ExecutionCancelled, OutcomeKind, PermanentFailure, TemporaryFailure


class Model(BaseModel):
    width: int = Field(gt=0)
    name: str


@pytest.mark.parametrize(
    ("error", "kind", "code", "message"),
    [
        (TemporaryFailure("busy", "try later"), OutcomeKind.TEMPORARY, "busy", "try later"),
        (PermanentFailure("gone"), OutcomeKind.PERMANENT, "gone", "gone"),
        (ValueError("odd"), OutcomeKind.TEMPORARY, "unhandled_error", "ValueError: odd"),
        (MemoryError(), OutcomeKind.TEMPORARY, "unhandled_error", "MemoryError: "),
        (ExecutionCancelled(), OutcomeKind.TEMPORARY, "unhandled_error", "ExecutionCancelled: "),
    ],
)
def test_exceptions(error: Exception, kind: OutcomeKind, code: str, message: str) -> None:
    came_of = outcome.of_exception(error, canceled=False)
    assert came_of is not None
    assert (came_of.kind, came_of.error_code, came_of.error_message) == (kind, code, message)


@pytest.mark.parametrize("error", [TemporaryFailure("busy"), ExecutionCancelled(), ValueError("odd")])
def test_nothing_comes_of_a_canceled_execution(error: Exception) -> None:
    assert outcome.of_exception(error, canceled=True) is None


def test_an_invalid_input_names_the_places_and_not_the_values() -> None:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"width": "secret-value", "name": 3})
    came_of = outcome.of_invalid_input(caught.value)
    assert (came_of.kind, came_of.error_code) == (OutcomeKind.PERMANENT, "invalid_input")
    assert "$['width']" in came_of.error_message
    assert "$['name']" in came_of.error_message
    assert "secret-value" not in came_of.error_message


def test_a_model_refused_inside_an_action_names_no_values_either() -> None:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"width": "secret-value", "name": 3})
    came_of = outcome.of_exception(caught.value, canceled=False)
    assert came_of is not None
    assert (came_of.kind, came_of.error_code) == (OutcomeKind.TEMPORARY, "unhandled_error")
    assert came_of.error_message.startswith("ValidationError: $['width']: ")
    assert "$['name']" in came_of.error_message
    assert "secret-value" not in came_of.error_message


@pytest.mark.parametrize("kind", [ValueError, lambda text: TemporaryFailure("busy", text)])
def test_secrets_in_error_texts_are_blanked(kind: Callable[[str], Exception]) -> None:
    text = (
        'cannot reach https://me:hunter2@store.example: refused "Bearer hunter2"\nDETAIL:  Key (a)=(hunter2)'
    )
    came_of = outcome.of_exception(kind(text), canceled=False)
    assert came_of is not None
    assert "hunter2" not in came_of.error_message
    assert "store.example" in came_of.error_message


def test_an_exception_without_a_readable_text_is_named_all_the_same() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    came_of = outcome.of_exception(Odd(), canceled=False)
    assert came_of is not None
    assert came_of.error_message == "Odd: (its text cannot be read)"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("x" * (64 * 1024), "result_too_large"),
        ("a\x00b", "result_invalid"),
        ("\ud800", "result_invalid"),
        (float("nan"), "result_invalid"),
        ({1: 2}, "result_invalid"),
        ({"a": object()}, "result_invalid"),
        (10**1000, "result_invalid"),
    ],
)
def test_an_output_that_cannot_be_stored_fails_for_good(output: Any, code: str) -> None:
    result = json.loads(outcome.encode(outcome.success(output)))
    assert (result["kind"], result["error_code"]) == ("permanent_failure", code)
    assert "output" not in result


@pytest.mark.parametrize("output", [None, 0, "", {}, {"n": 10**999}, ["x" * 60_000]])
def test_an_output_that_can(output: Any) -> None:
    assert json.loads(outcome.encode(outcome.success(output))) == {"kind": "success", "output": output}


def test_error_texts_are_cleaned_and_cut() -> None:
    result = json.loads(outcome.encode(outcome.temporary("c" * 200, "\x00\ud800" + "\N{EURO SIGN}" * 5_000)))
    assert len(result["error_code"].encode()) <= 128
    assert len(result["error_message"].encode()) <= 8 * 1024
    assert result["error_message"].startswith("\N{REPLACEMENT CHARACTER}" * 2 + "\N{EURO SIGN}")
    assert result["error_message"].endswith("\N{EURO SIGN}...")
