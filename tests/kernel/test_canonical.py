"""Strict reading, canonical writing, and the place named in every refusal."""

from __future__ import annotations

import hashlib
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.strategies import ANYTHING, JSON
from workflows.kernel.canonical import MAX_DEPTH, digest, dumps, find_faults, loads, storable
from workflows.kernel.errors import JsonInvalid

LONG = "9" * 1001

REFUSED = [
    # text, code, line, column, path
    ("", "invalid_json", 1, 1, None),
    ("{", "invalid_json", 1, 2, None),
    ("[1,]", "invalid_json", 1, 4, None),
    ("{} {}", "invalid_json", 1, 4, None),
    ("\ufeff{}", "invalid_json", 1, 1, None),
    ("[\n  tru]", "invalid_json", 2, 3, None),
    ('["\x01"]', "invalid_json", 1, 3, None),
    ('{"a": 1,\n "a": 2}', "duplicate_key", 2, 2, "$.a"),
    ('{"a": [{"b": 1, "c": 2, "b": 3}]}', "duplicate_key", 1, 25, "$.a[0].b"),
    ('{"a": 1, "\\u0061": 2}', "duplicate_key", 1, 10, "$.a"),
    ("[1, NaN]", "invalid_number", 1, 5, "$[1]"),
    ("[-Infinity]", "invalid_number", 1, 2, "$[0]"),
    ('{"x": 1e999}', "invalid_number", 1, 7, "$.x"),
    (f"[0,\n {LONG}]", "integer_too_long", 2, 2, "$[1]"),
    (f'{{"n": -{LONG}}}', "integer_too_long", 1, 7, "$.n"),
    (f"[{'9' * 5000}]", "integer_too_long", 1, 2, "$[0]"),
    ('{"a": ["ok", "\\u0000"]}', "invalid_text", 1, 14, "$.a[1]"),
    ('{"a": "\\ud800"}', "invalid_text", 1, 7, "$.a"),
    ('{"a": "\\udc00\\ud800"}', "invalid_text", 1, 7, "$.a"),
    ('{"\\u0000": 1}', "invalid_text", 1, 2, '$["\\u0000"]'),
    ('{"x": {"\\ud834": 1}}', "invalid_text", 1, 8, '$.x["\\ud834"]'),
    ("[" * 101 + "]" * 101, "too_deep", 1, 101, "$" + "[0]" * 100),
    ("[" * 100_000, "too_deep", 1, 101, "$" + "[0]" * 100),
    ('{"a":' * 100_000, "too_deep", 1, 501, "$" + ".a" * 100),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "path"), REFUSED)
def test_what_is_not_strict_json_is_refused_with_its_place(
    text: str, code: str, line: int, column: int, path: str | None
) -> None:
    with pytest.raises(JsonInvalid) as refused:
        loads(text)
    error = refused.value
    assert (error.code, error.line, error.column, error.path) == (code, line, column, path)
    assert f"line {line}, column {column}" in error.message or code == "invalid_json"


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    with pytest.raises(JsonInvalid) as refused:
        loads(b'{"a":\n "\xc3\xa9\xff"}')
    assert (refused.value.code, refused.value.line, refused.value.column) == ("invalid_utf8", 2, 4)


ACCEPTED: list[tuple[str | bytes, Any]] = [
    ("0", 0),
    ('"\\ud83d\\ude00"', "\U0001f600"),
    ('"\\\\u0000"', "\\u0000"),
    (b'"\xc3\xa9"', "\xe9"),
    (" [1 , 2 ] \n", [1, 2]),
    ("9007199254740993", 9007199254740993),
    ("9" * 1000, int("9" * 1000)),
    ("-" + "9" * 1000, -int("9" * 1000)),
    ("[" * 100 + "]" * 100, None),
]


@pytest.mark.parametrize(("raw", "value"), ACCEPTED)
def test_what_is_json_is_read_exactly(raw: str | bytes, value: Any) -> None:
    read = loads(raw)
    assert value is None or (read == value and type(read) is type(value))


@given(JSON)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    read = loads(dumps(value))
    assert read == value
    assert dumps(read) == dumps(value)


@given(JSON)
def test_writing_is_idempotent_and_the_digest_is_that_of_the_text(value: Any) -> None:
    text = dumps(value)
    assert dumps(loads(text.encode())) == text
    assert digest(text) == hashlib.sha256(text.encode()).digest()


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(value: Any, chance: random.Random) -> None:
    assert dumps(_shuffled(value, chance)) == dumps(value)


def _shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, _shuffled(item, chance)) for key, item in value.items()]
        chance.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    return value


@given(ANYTHING)
def test_reading_refuses_exactly_what_writing_refuses(value: Any) -> None:
    if list(find_faults(value)):
        with pytest.raises(JsonInvalid) as refused:
            dumps(value)
        assert (refused.value.path or "").startswith("$")
    else:
        assert loads(dumps(value)) == value


@given(ANYTHING)
def test_faults_are_found_wherever_they_are_and_only_there(value: Any) -> None:
    found = {fault.parts for fault in find_faults([value, {"x": value}])}
    alone = {fault.parts for fault in find_faults(value)}
    assert found == {(0, *parts) for parts in alone} | {(1, "x", *parts) for parts in alone}


def test_one_and_true_and_one_point_zero_are_three_values() -> None:
    assert [dumps(value) for value in (1, True, 1.0)] == ["1", "true", "1.0"]


def test_text_is_written_as_it_is_and_keys_are_sorted() -> None:
    assert dumps({"b": "\xe9\U0001f600", "a": [1, None]}) == '{"a":[1,null],"b":"\xe9\U0001f600"}'


@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        ({"a": [1, math.nan]}, "invalid_number", "$.a[1]"),
        ({"a": {"b c": "\x00"}}, "invalid_text", '$.a["b c"]'),
        ({1: 2}, "not_json", '$["<int>"]'),
        ({"a": (1,)}, "not_json", "$.a"),
        ({"a": {1, 2}}, "not_json", "$.a"),
        ([10**1000], "integer_too_long", "$[0]"),
        ("\udfff", "invalid_text", "$"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: Any, code: str, path: str) -> None:
    with pytest.raises(JsonInvalid) as refused:
        dumps(value)
    assert (refused.value.code, refused.value.path) == (code, path)


def test_nesting_is_bounded_and_never_exhausts_the_stack() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    dumps(value)
    for _ in range(200_000):
        value = [value]
    with pytest.raises(JsonInvalid) as refused:
        dumps(value)
    assert refused.value.code == "too_deep"
    while isinstance(value, list):  # taken apart by hand: freeing it in one go would be the recursion
        value = value.pop()


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(JsonInvalid) as refused:
        dumps(value)
    assert refused.value.code == "too_deep"


def test_storable_counts_bytes_of_utf8() -> None:
    assert storable("\xe9" * 4, max_bytes=10) == '"\xe9\xe9\xe9\xe9"'
    with pytest.raises(JsonInvalid) as refused:
        storable("\xe9" * 4, max_bytes=9)
    assert (refused.value.code, refused.value.path) == ("too_large", "$")


REPAIRED = [
    '{"output": "a\\u0000b"}',
    '{"output": "a\x00b"}',
    '{"output": "\\ud800"}',
    '{"output": NaN}',
    '{"output": 1e999}',
    f'{{"output": {"9" * 5000}}}',
    '{"output": {"a": 1, "a": 2}}',
    '{"output": ' + "[" * 101 + "]" * 101 + "}",
]


@pytest.mark.parametrize("text", REPAIRED)
def test_repaired_text_keeps_the_damage_to_the_item_that_holds_it(text: str) -> None:
    value = loads(f'[{text}, {{"output": 1}}]', repair_text=True)
    assert isinstance(value, list)
    damaged, sound = value
    assert storable(sound, max_bytes=100) == '{"output":1}'
    with pytest.raises(JsonInvalid) as refused:
        storable(damaged, max_bytes=10_000)
    assert (refused.value.path or "").startswith("$.output")


def test_repairing_still_refuses_what_is_no_json_at_all() -> None:
    for text in ("", "[1,]", "[" * 100_000, "{} {}"):
        with pytest.raises(JsonInvalid):
            loads(text, repair_text=True)
    assert loads(b'"\xed\xa0\x80"', repair_text=True) == "\ud800"


@given(JSON)
def test_repairing_changes_nothing_in_sound_json(value: Any) -> None:
    assert loads(dumps(value), repair_text=True) == value


@given(st.text(max_size=40))
def test_any_text_is_either_read_or_cleanly_refused(text: str) -> None:
    try:
        value = loads(text)
    except JsonInvalid as error:
        code = error.code
    else:
        assert value == json.loads(text)
        return
    if code == "invalid_json":
        with pytest.raises(ValueError, match=r"line|BOM"):
            json.loads(text)
