"""Arrays written by hand must come back as they went in, and a batch must notice a row too few."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from platform_site.statements import Batch, Statements, UnexpectedRowCount, array_literal, copy_rows

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the strategy adds the zone itself
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)


def _back(values: list[Any], kind: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{kind}[]", [array_literal(values)])
        (found,) = cursor.fetchone()
    return list(found)


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(texts=st.lists(st.none() | storable))
def test_texts_come_back_as_they_went_in(texts: list[str | None]) -> None:
    assert _back(texts, "text") == texts


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    ids=st.lists(st.uuids()),
    times=st.lists(st.none() | moments),
    digests=st.lists(st.binary(max_size=40)),
    flags=st.lists(st.booleans()),
)
def test_other_values_come_back_as_they_went_in(
    numbers: list[int | None],
    ids: list[UUID],
    times: list[datetime | None],
    digests: list[bytes],
    flags: list[bool],
) -> None:
    assert _back(numbers, "bigint") == numbers
    assert _back(ids, "uuid") == ids
    assert _back(times, "timestamptz") == times
    assert [bytes(one) for one in _back(digests, "bytea")] == digests
    assert _back(flags, "bool") == flags


@pytest.mark.parametrize("word", ["NULL", "null", "", '"', "\\", "{}", ",", " padded ", "a\nb"])
@pytest.mark.django_db
def test_words_that_mean_something_in_an_array_are_only_words(word: str) -> None:
    assert _back([word, "x"], "text") == [word, "x"]


def test_what_no_array_here_holds_is_refused() -> None:
    with pytest.raises(TypeError, match="float"):
        array_literal([1.5])


@pytest.mark.django_db
def test_a_batch_notices_that_another_number_of_rows_was_touched() -> None:
    statements = Statements("dispatch.sql")
    batch = Batch()
    batch.add(statements, "live_pools", 0)
    batch.run()
    batch.add(statements, "live_pools", 2)
    with pytest.raises(UnexpectedRowCount, match="live_pools"), transaction.atomic():
        batch.run()


@pytest.mark.django_db
def test_a_batch_gives_the_rows_of_each_statement() -> None:
    batch = Batch()
    first = batch.add(Statements("workflows.ledger.sql"), "read_clock")
    second = batch.add(Statements("dispatch.sql"), "live_pools")
    batch.run()
    assert first.records()[0].keys() == {"clock_timestamp"}
    assert second.rows == []
    batch.run()  # nothing noted, nothing sent


@pytest.mark.django_db
def test_copied_rows_are_there() -> None:
    copy_rows("access_tenant", ("slug", "name"), [("copied-a", "A"), ("copied-b", 'B "quoted"\t')])
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM access_tenant WHERE slug LIKE 'copied-%%' ORDER BY slug")
        assert [name for (name,) in cursor.fetchall()] == ["A", 'B "quoted"\t']
