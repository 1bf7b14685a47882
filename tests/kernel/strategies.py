"""Values that the kernel's laws are tried on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

INTEGERS = st.one_of(
    st.integers(),
    st.integers(min_value=2**53, max_value=2**64),
    st.sampled_from([10**1000 - 1, -(10**1000) + 1, 9007199254740993, 0]),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXT)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)

BAD_SCALARS = st.sampled_from(
    [float("nan"), float("inf"), -float("inf"), "\x00", "a\ud800b", "\udfff", 10**1000, -(10**1000), (), b"x"]
)
ANYTHING = st.recursive(
    st.one_of(SCALARS, BAD_SCALARS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(TEXT, st.sampled_from(["\x00", "\ud800"]), st.integers()), inner, max_size=4
        ),
    ),
    max_leaves=12,
)
"""JSON with what JSON forbids strewn into it."""

KEYS = st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True)


@st.composite
def dags(draw: st.DrawFn, max_tasks: int = 12) -> tuple[list[str], list[list[str]]]:
    """Keys and dependencies of an acyclic graph, in an order that is not topological."""
    keys = draw(st.lists(KEYS, unique=True, min_size=1, max_size=max_tasks))
    rank = draw(st.permutations(range(len(keys))))
    depends_on: list[list[str]] = []
    for position in range(len(keys)):
        earlier = [key for other, key in enumerate(keys) if rank[other] < rank[position]]
        depends_on.append(
            draw(st.lists(st.sampled_from(earlier), unique=True, max_size=4)) if earlier else []
        )
    return keys, depends_on


def task(key: str, **fields: Any) -> dict[str, Any]:
    """A task as short as the format allows, and the fields of interest."""
    return {"key": key, "executor": "python", "action": "work", **fields}


def workflow(*tasks: Any, **fields: Any) -> dict[str, Any]:
    """A workflow as short as the format allows, and the fields of interest."""
    return {"id": "example", "concurrency": 2, "tasks": list(tasks), **fields}
