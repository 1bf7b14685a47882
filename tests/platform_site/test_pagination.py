from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from platform_site.access.models import ApiToken, Tenant
from platform_site.access.tenants import default_tenant
from platform_site.api.errors import InvalidCursor
from platform_site.api.pagination import Key, Keyset

NEWEST = Keyset("tokens", [Key("created_at", datetime, descending=True), Key("id", UUID, descending=True)])
MIXED = Keyset("mixed", [Key("role", str), Key("created_at", datetime, descending=True), Key("id", UUID)])
BY_SLUG = Keyset("tenants", [Key("slug", str)])


@pytest.fixture
def tokens(db: None) -> list[ApiToken]:
    tenant = default_tenant()
    now = datetime.now(UTC)
    made = [
        ApiToken(
            id=uuid4(),
            tenant=tenant,
            name=f"t{n}",
            role="viewer" if n % 2 else "operator",
            prefix=f"p{n}",
            digest=n.to_bytes(32),
            created_at=now - timedelta(seconds=n // 3),  # several at one instant: the id decides
        )
        for n in range(11)
    ]
    return ApiToken.objects.bulk_create(made)


def walk(keyset: Keyset, queryset: Any, limit: int, **filters: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(100):
        page = keyset.page(queryset, limit=limit, cursor=cursor, filters=filters)
        assert 1 <= len(page.items) <= limit
        found += page.items
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor
    raise AssertionError("the pages never end")


@pytest.mark.parametrize("limit", [1, 3, 11, 12])
@pytest.mark.parametrize("keyset", [NEWEST, MIXED], ids=["one direction", "mixed"])
def test_pages_together_are_the_list(tokens: list[ApiToken], keyset: Keyset, limit: int) -> None:
    whole = list(ApiToken.objects.order_by(*keyset.ordering()))
    assert walk(keyset, ApiToken.objects.all(), limit) == whole


def test_rows_of_values_work_as_well(tokens: list[ApiToken]) -> None:
    rows = walk(NEWEST, ApiToken.objects.values("id", "created_at"), 4)
    assert [row["id"] for row in rows] == [
        token.id for token in ApiToken.objects.order_by(*NEWEST.ordering())
    ]


def test_a_page_is_one_statement_with_a_row_comparison(tokens: list[ApiToken]) -> None:
    first = NEWEST.page(ApiToken.objects.all(), limit=2, cursor=None)
    with CaptureQueriesContext(connection) as captured:
        NEWEST.page(ApiToken.objects.all(), limit=2, cursor=first.next_cursor)
    assert len(captured) == 1
    assert '("access_apitoken"."created_at", "access_apitoken"."id") <' in captured[0]["sql"]


@pytest.mark.django_db
def test_text_keys_and_an_empty_list() -> None:
    default_tenant()
    Tenant.objects.bulk_create(Tenant(slug=f"t{n}", name="T") for n in range(4))
    assert [tenant.slug for tenant in walk(BY_SLUG, Tenant.objects.all(), 2)] == [
        "default",
        "t0",
        "t1",
        "t2",
        "t3",
    ]
    empty = BY_SLUG.page(Tenant.objects.filter(slug="none"), limit=2, cursor=None)
    assert empty.as_json() == {"items": [], "next_cursor": None}


def test_a_page_maps_its_items_and_keeps_its_cursor() -> None:
    page = BY_SLUG.cut([{"slug": "a"}, {"slug": "b"}], limit=1).map(lambda row: row["slug"])
    assert page.items == ("a",)
    assert page.next_cursor


def forged(**changes: Any) -> str:
    document = json.loads(base64.urlsafe_b64decode(BY_SLUG.write(["a"]) + "=="))
    return base64.urlsafe_b64encode(json.dumps({**document, **changes}).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "%%%",
        "é",
        BY_SLUG.write(["a"]) + "x",
        BY_SLUG.write(["a"])[:-4],
        "A" * 6_000,
        base64.urlsafe_b64encode(b"[" * 3_000).decode(),
        base64.urlsafe_b64encode(b"null").decode(),
        forged(v=2),
        forged(k="runs"),
        forged(f="0" * 16),
        forged(a=[]),
        forged(a=["a", "b"]),
        forged(a=[1]),
        forged(a=None),
        forged(a=["\x00"]),
        forged(a=["\ud800"]),
        forged(extra=1),
    ],
)
def test_a_changed_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        BY_SLUG.read(cursor)


@pytest.mark.parametrize("value", ["yesterday", "2026-01-01T00:00:00", 5, None, True])
def test_values_of_another_type_are_refused(value: Any) -> None:
    raw = json.loads(base64.urlsafe_b64decode(NEWEST.write([datetime.now(UTC), uuid4()]) + "=="))
    raw["a"][0] = value
    cursor = base64.urlsafe_b64encode(json.dumps(raw).encode()).decode().rstrip("=")
    with pytest.raises(InvalidCursor):
        NEWEST.read(cursor)


def test_a_cursor_belongs_to_its_filters() -> None:
    cursor = BY_SLUG.write(["a"], filters={"state": "failed", "label": None})
    assert BY_SLUG.read(cursor, filters={"state": "failed"}) == ["a"]
    for others in ({}, {"state": "running"}, {"state": "failed", "label": "x"}):
        with pytest.raises(InvalidCursor):
            BY_SLUG.read(cursor, filters=others)


def test_keys_come_back_as_they_were() -> None:
    moment, identity = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), uuid4()
    assert NEWEST.read(NEWEST.write([moment, identity])) == [moment, identity]
    assert "=" not in NEWEST.write([moment, identity])
