"""The format's refusals in our own words: a path, a stable code and a sentence for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from workflows.kernel.canonical import find_faults
from workflows.kernel.errors import Problem
from workflows.kernel.json_text import json_path

_NAME = "1 to 64 characters out of a-z, 0-9, _ and -"
_PATTERNS = {
    "id": ("invalid_format", f"Must be {_NAME}."),
    "key": ("invalid_format", f"Must be {_NAME}."),
    "executor": ("invalid_format", f"Must be {_NAME}, starting with a letter."),
    "action": ("blank", "Must not be blank."),
    "non_retryable": ("blank", "Must not be blank."),
}
_LABEL_NAME = (
    "A label name is 1 to 63 of A-Z, a-z, 0-9, '.', '_', '/' and '-', starting with a letter or digit."
)
_LABEL_VALUE = "A label value has at most 64 characters and no control characters."

_CODES = {
    "missing": ("missing", "This field is required."),
    "extra_forbidden": ("unknown_field", "The format has no such field."),
    "int_type": ("wrong_type", "Must be an integer."),
    "int_from_float": ("wrong_type", "Must be an integer."),
    "float_type": ("wrong_type", "Must be a number."),
    "string_type": ("wrong_type", "Must be text."),
    "bool_type": ("wrong_type", "Must be true or false."),
    "tuple_type": ("wrong_type", "Must be an array."),
    "dict_type": ("wrong_type", "Must be an object."),
    "model_type": ("wrong_type", "Must be an object."),
    "string_unicode": ("invalid_text", "Must be text without lone surrogates."),
    "finite_number": ("invalid_number", "Must be a finite number."),
    "literal_error": ("invalid_choice", "Must be {expected}."),
    "greater_than_equal": ("out_of_range", "Must be at least {ge:,}."),
    "less_than_equal": ("out_of_range", "Must be at most {le:,}."),
    "string_too_long": ("too_long", "Must have at most {max_length:,} characters."),
    "too_long": ("too_many", "Must have at most {max_length:,} items."),
    "too_short": ("too_few", "Must have at least {min_length:,} items."),
}


def readable(document: Mapping[str, Any], unsound: Collection[str]) -> dict[str, Any]:
    """What the models can look at: names that cannot be stored are left out, for one would spoil the whole.

    `unsound` are the fields of free content (see `checks.field_of`) that are reported as such already.
    """
    kept = _without_bad_names(document)
    if "$.params" in unsound:
        kept.pop("params", None)
    if isinstance(kept.get("tasks"), list):
        kept["tasks"] = [
            _readable_task(task, drop_input=f"$.tasks[{position}].input" in unsound)
            for position, task in enumerate(kept["tasks"])
        ]
    return kept


def _readable_task(task: Any, *, drop_input: bool) -> Any:
    if not isinstance(task, dict):
        return task
    kept = _without_bad_names(task)
    if drop_input:
        kept.pop("input", None)
    for field in ("retry", "requires"):
        if isinstance(kept.get(field), dict):
            kept[field] = _without_bad_names(kept[field])
    return kept


def _without_bad_names(part: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: item for name, item in part.items() if isinstance(name, str) and not any(find_faults(name))}


def structure_problems(error: ValidationError, document: Mapping[str, Any]) -> list[Problem]:
    """Translate what the models found. Values that were sent are never repeated."""
    found = []
    for detail in error.errors(include_url=False, include_input=False):
        place = detail["loc"]
        if detail["type"] == "too_short" and place == ("tasks",) and document["tasks"]:
            continue  # items that failed are not counted by the library: they are there all the same
        is_name = place[-1] == "[key]"
        path = json_path(place[:-1] if is_name else place)
        code, sentence = _translate(detail["type"], place, detail.get("ctx", {}), detail["msg"])
        found.append(Problem(path, code, sentence))
    return found


def _translate(
    kind: str, place: tuple[int | str, ...], context: Mapping[str, Any], message: str
) -> tuple[str, str]:
    if kind == "string_pattern_mismatch":
        return _pattern(place)
    code, template = _CODES.get(kind, ("invalid", message))
    return code, template.format(**context) if kind in _CODES else template


def _pattern(place: tuple[int | str, ...]) -> tuple[str, str]:
    if place[-1] == "[key]":
        return "invalid_format", _LABEL_NAME
    if "requires" in place:
        return "invalid_format", _LABEL_VALUE
    name = next(part for part in reversed(place) if isinstance(part, str))
    return _PATTERNS[name]
