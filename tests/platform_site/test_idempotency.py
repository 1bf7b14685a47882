from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from platform_site.access.models import IdempotencyRecord
from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant
from platform_site.api.errors import IdempotencyConflict
from platform_site.api.idempotency import Idempotency, begin, finish, request_digest
from tests.platform_site.waiting import wait_until

ONE, OTHER = bytes(32), bytes([1]) * 32


def keyed(key: str = "k", **changes: Any) -> Idempotency:
    fields = {
        "tenant_id": default_tenant().id,
        "principal_id": "p",
        "operation": "o",
        "key": key,
        "digest": ONE,
    }
    return Idempotency(**{**fields, **changes})


def operate(request: Idempotency, facts: dict[str, Any]) -> dict[str, Any]:
    with transaction.atomic():
        replay = begin(request)
        if replay is not None:
            return dict(replay.facts)
        finish(request, facts=facts)
        return facts


@pytest.mark.django_db
def test_the_same_request_gets_the_first_answer() -> None:
    assert operate(keyed(), {"run_id": "a"}) == {"run_id": "a"}
    assert operate(keyed(), {"run_id": "b"}) == {"run_id": "a"}
    record = IdempotencyRecord.objects.get()
    assert record.expires_at - record.created_at == timedelta(days=7)


@pytest.mark.django_db
def test_another_request_with_the_key_is_a_conflict() -> None:
    operate(keyed(), {})
    with pytest.raises(IdempotencyConflict):
        operate(keyed(digest=OTHER), {})


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"key": "k2"}, {"principal_id": "q"}, {"operation": "r"}])
def test_keys_of_others_are_other_keys(change: dict[str, str]) -> None:
    operate(keyed(), {"run_id": "a"})
    assert operate(keyed(**change, digest=OTHER), {"run_id": "b"}) == {"run_id": "b"}


@pytest.mark.django_db
def test_without_a_key_nothing_is_remembered() -> None:
    with transaction.atomic():
        assert begin(None) is None
        finish(None, facts={"run_id": "a"})
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.django_db
def test_a_failed_operation_leaves_its_key_free() -> None:
    def fail() -> None:
        with transaction.atomic():
            begin(keyed())
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert operate(keyed(digest=OTHER), {"run_id": "b"}) == {"run_id": "b"}


@pytest.mark.django_db(transaction=True)
def test_it_refuses_to_run_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        begin(None)
    with pytest.raises(RuntimeError, match="transaction"):
        finish(None, facts={})


@pytest.mark.django_db
def test_mistakes_of_an_operation_are_loud() -> None:
    with pytest.raises(RuntimeError, match="without the begin"), transaction.atomic():
        finish(keyed(), facts={})
    with transaction.atomic():
        begin(keyed())
        with pytest.raises(RuntimeError, match="finish"):
            begin(keyed())


def _blocked_sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees the first look again
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def _in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as raised:  # noqa: BLE001 handed to the test
            results.append(raised)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first_commits", [True, False])
def test_an_equal_request_waits_for_the_first_in_flight(first_commits: bool) -> None:
    request = keyed()
    with transaction.atomic():
        assert begin(request) is None
        thread, results = _in_thread(lambda: operate(request, {"run_id": "second"}))
        wait_until(lambda: _blocked_sessions() == 1)
        finish(request, facts={"run_id": "first"})
        if not first_commits:
            transaction.set_rollback(True)
    thread.join(timeout=10)
    assert results == [{"run_id": "first" if first_commits else "second"}]
    assert IdempotencyRecord.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_different_request_in_flight_is_a_conflict_once_the_first_commits() -> None:
    request, other = keyed(), keyed(digest=OTHER)
    with transaction.atomic():
        begin(request)
        thread, results = _in_thread(lambda: operate(other, {}))
        wait_until(lambda: _blocked_sessions() == 1)
        finish(request, facts={})
    thread.join(timeout=10)
    assert isinstance(results[0], IdempotencyConflict)


def test_the_digest_is_of_the_values_and_the_address() -> None:
    digest = request_digest("/a", {"x": 1, "y": [2]})
    assert digest == request_digest("/a", {"y": [2], "x": 1})
    assert digest != request_digest("/b", {"x": 1, "y": [2]})
    assert digest != request_digest("/a", {"x": 1, "y": [3]})
    assert len(digest) == 32


@pytest.mark.django_db
@pytest.mark.urls("tests.platform_site.furniture")
@pytest.mark.parametrize(
    ("key", "status"),
    [("a", 200), ("~!" * 100, 200), ("x" * 255, 200), ("x" * 256, 400), ("", 400), ("a b", 400), (None, 400)],
)
def test_which_headers_are_keys(key: str | None, status: int) -> None:
    plain = create_token(tenant=default_tenant(), name="t", role=Role.OPERATOR).plain
    headers = {"authorization": f"Bearer {plain}", **({"idempotency-key": key} if key is not None else {})}
    response = Client().post("/api/v1/keyed", {}, content_type="application/json", headers=headers)
    assert response.status_code == status
    if status == 400:
        assert "Idempotency-Key" in response.json()["error"]["message"]
