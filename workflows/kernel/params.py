"""The JSON Schema of run parameters: checked when a version is published, applied when a run starts.

Draft 2020-12. References must be local: a schema is data from outside, and nothing in it may make the
platform fetch anything. Messages never repeat the values that were sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from workflows.kernel.canonical import encode
from workflows.kernel.errors import Problem
from workflows.kernel.format import MAX_PARAMS_SCHEMA_BYTES
from workflows.kernel.json_text import json_path

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
_REFERENCES = ("$ref", "$dynamicRef")
_TOO_RECURSIVE = "The schema refers to itself without end, or more deeply than can be followed."


def check_schema(schema: JsonValue, *, root: str = "$.params") -> list[Problem]:
    """Everything that is wrong with a parameters schema (an object, already known to be sound JSON)."""
    if not isinstance(schema, dict):
        return []  # refused by its type already
    if len(encode(schema).encode()) > MAX_PARAMS_SCHEMA_BYTES:
        sentence = f"The schema takes more than {MAX_PARAMS_SCHEMA_BYTES:,} bytes."
        return [Problem(root, "too_large", sentence)]
    if schema.get("$schema", _DIALECT) != _DIALECT:
        return [Problem(f'{root}["$schema"]', "invalid_schema", f"Only {_DIALECT} is understood.")]
    problems = [_schema_problem(error, root) for error in _META.iter_errors(schema)]
    if problems:
        return sorted(problems, key=lambda problem: problem.path)
    return _check_subschemas(schema, root)


def _schema_problem(error: ValidationError, root: str) -> Problem:
    return Problem(
        json_path(list(error.absolute_path), root), "invalid_schema", f"Not a JSON Schema: {_sentence(error)}"
    )


def _check_subschemas(schema: dict[str, Any], root: str) -> list[Problem]:
    resolver = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    problems: list[Problem] = []
    for place, part in _subschemas(schema, root):
        problems += _check_patterns(place, part)
        if part.get("$id"):
            problems.append(
                Problem(f'{place}["$id"]', "invalid_schema", "A parameters schema may not have an $id.")
            )
            return problems  # an $id changes what the references below it mean
        for keyword in _REFERENCES:
            target = part.get(keyword)
            if target is None:
                continue
            where = f'{place}["{keyword}"]'
            if not target.startswith("#"):
                problems.append(
                    Problem(where, "remote_reference", "Only references within the schema are followed.")
                )
                continue
            try:
                resolver.lookup(target)
            except Unresolvable:
                problems.append(
                    Problem(where, "invalid_schema", "The reference leads to nothing in the schema.")
                )
    if not problems and _loops(schema):
        problems.append(Problem(root, "invalid_schema", _TOO_RECURSIVE))
    return problems


def _check_patterns(place: str, part: Mapping[str, Any]) -> Iterator[Problem]:
    patterns = [(f"{place}.pattern", part["pattern"])] if "pattern" in part else []
    patterns += [(f"{place}.patternProperties", pattern) for pattern in part.get("patternProperties", ())]
    for where, pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            yield Problem(where, "invalid_schema", "The pattern is not a regular expression.")


_ONE = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def _subschemas(schema: dict[str, Any], root: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema object within a valid schema; property names and constants are not mistaken for one."""
    stack: list[tuple[str, Any]] = [(root, schema)]
    while stack:
        place, part = stack.pop()
        if not isinstance(part, dict):
            continue  # true and false are schemas too
        yield place, part
        children: list[tuple[tuple[str | int, ...], Any]]
        children = [((keyword,), part[keyword]) for keyword in _ONE if keyword in part]
        for keyword in _MANY:
            children += [((keyword, index), item) for index, item in enumerate(part.get(keyword, ()))]
        for keyword in _NAMED:
            children += [((keyword, name), item) for name, item in part.get(keyword, {}).items()]
        stack += [(json_path(parts, place), item) for parts, item in reversed(children)]


def _loops(schema: dict[str, Any]) -> bool:
    try:
        build_validator(schema).is_valid({})
    except RecursionError:
        return True
    return False


def build_validator(schema: Mapping[str, Any]) -> Validator:
    """A validator that can look up nothing outside the schema."""
    return Draft202012Validator(schema, registry=Registry())


def check_value(validator: Validator, value: JsonValue) -> list[Problem]:
    """Everything in the parameters that the schema does not allow, in a stable order."""
    try:
        errors = sorted(
            validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path]
        )
    except RecursionError:
        return [Problem("$", "too_deep", _TOO_RECURSIVE)]
    # The library gives one error per missing name, each with the whole list of names: hence the repeats.
    return list(dict.fromkeys(problem for error in errors for problem in _value_problems(error)))


def _value_problems(error: ValidationError) -> Iterator[Problem]:
    place = list(error.absolute_path)
    if error.validator == "required" and isinstance(error.instance, dict):
        wanted: Any = error.validator_value
        for name in wanted:
            if name not in error.instance:
                yield Problem(json_path([*place, name]), "missing", "This parameter is required.")
    elif error.validator == "additionalProperties" and isinstance(error.instance, dict):
        for name in _undeclared(error):
            yield Problem(json_path([*place, name]), "unknown_field", "This parameter is not declared.")
    else:
        code = "wrong_type" if error.validator == "type" else "invalid_param"
        yield Problem(json_path(place), code, _sentence(error))


def _undeclared(error: ValidationError) -> list[str]:
    schema: Any = error.schema
    patterns = list(schema.get("patternProperties", ()))
    declared = schema.get("properties", {})
    given: Any = error.instance
    return [
        name
        for name in given
        if name not in declared and not any(re.search(pattern, name) for pattern in patterns)
    ]


_SENTENCES = {
    "type": "Must be of type {}.",
    "enum": "Must be one of the listed values.",
    "const": "Must be the one allowed value.",
    "minimum": "Must be at least {}.",
    "maximum": "Must be at most {}.",
    "exclusiveMinimum": "Must be more than {}.",
    "exclusiveMaximum": "Must be less than {}.",
    "multipleOf": "Must be a multiple of {}.",
    "minLength": "Must have at least {} characters.",
    "maxLength": "Must have at most {} characters.",
    "minItems": "Must have at least {} items.",
    "maxItems": "Must have at most {} items.",
    "minProperties": "Must have at least {} entries.",
    "maxProperties": "Must have at most {} entries.",
    "uniqueItems": "Must not repeat an item.",
    "pattern": "Must match the pattern {}.",
    "anyOf": "Matches none of the alternatives.",
    "oneOf": "Must match exactly one of the alternatives.",
    "not": "Matches what is excluded.",
    "required": "A required entry is missing.",
    "additionalProperties": "Holds an entry that is not declared.",
}


def _sentence(error: ValidationError) -> str:
    """Our own words: the library's repeat the offending value, which may be secret or huge."""
    template = _SENTENCES.get(str(error.validator), f'Does not satisfy "{error.validator}".')
    limit = error.validator_value
    words = " or ".join(map(str, limit)) if isinstance(limit, list) else str(limit)
    return (
        template.format(words if len(words) <= 200 else f"{words[:197]}...") if "{}" in template else template
    )


def declares(schema: Mapping[str, Any], name: str) -> bool:
    """Whether a parameter of this name can exist: not if the schema closes its top level without it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
        return True
    patterns = schema.get("patternProperties")
    return name in properties or (
        isinstance(patterns, dict) and any(re.search(pattern, name) for pattern in patterns)
    )
