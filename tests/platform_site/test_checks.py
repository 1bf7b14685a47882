from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import OperationalError, connection

from dispatch.management.commands.coordinator import warn_of_missing_timeouts
from platform_site import checks, database


def found(*, deploy: bool = True) -> set[str]:
    return {
        message.id
        for message in run_checks(include_deployment_checks=deploy)
        if message.id and message.id.startswith("workload.")
    }


def workload(settings: Any, **changes: Any) -> None:
    settings.WORKLOAD = dataclasses.replace(settings.WORKLOAD, **changes)


def test_the_settings_of_the_tests_are_fine() -> None:
    assert found() == set()


@pytest.mark.parametrize(("lease", "wrong"), [(11_000, True), (11_001, False)])
def test_a_lease_outlasts_two_heartbeats_and_a_second(settings: Any, lease: int, wrong: bool) -> None:
    workload(settings, heartbeat_interval_ms=5_000, lease_duration_ms=lease)
    assert found(deploy=False) == ({"workload.E001"} if wrong else set())


@pytest.mark.parametrize(("size", "wrong"), [(17, True), (18, False)])
def test_a_pool_has_a_connection_for_every_thread(
    settings: Any, monkeypatch: pytest.MonkeyPatch, size: int, wrong: bool
) -> None:
    workload(settings, web_threads=16)
    monkeypatch.setitem(settings.DATABASES["default"], "OPTIONS", {"pool": {"max_size": size}})
    assert [message.id for message in checks.check_pool(None)] == (["workload.E002"] if wrong else [])


def test_hosts_and_debug(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert "workload.E003" in found(deploy=False)
    settings.DEBUG = True
    assert found(deploy=False) == set()
    workload(settings, bind="0.0.0.0:8000")
    assert found(deploy=False) == {"workload.W001"}


@pytest.mark.parametrize("key", ["k3yk3y", "ab" * 40])
def test_a_weak_key_is_named_and_not_shown(settings: Any, key: str) -> None:
    settings.SECRET_KEY = key
    assert found() == {"workload.W002"}
    (message,) = checks.check_secret_key(None)
    assert key not in f"{message.msg} {message.hint}"


@pytest.mark.parametrize(
    ("kind", "port", "wrong"), [("coordinator", "6432", 1), ("web", "6432", 0), ("coordinator", "5432", 0)]
)
def test_a_coordinator_behind_a_pooler(
    settings: Any, monkeypatch: pytest.MonkeyPatch, kind: str, port: str, wrong: int
) -> None:
    workload(settings, process_kind=kind)
    monkeypatch.setitem(settings.DATABASES["default"], "PORT", port)
    assert len(checks.check_coordinator_database(None)) == wrong


def test_what_is_fine_on_one_machine_and_not_on_a_network(settings: Any) -> None:
    workload(settings, bind="0.0.0.0:8000", embedded_database=True, metrics_public=True)
    assert found() == {"workload.W004", "workload.W005", "workload.W006"}
    workload(settings, embedded_database=False, metrics_public=False)
    settings.SECURE_SSL_REDIRECT = True
    assert found() == set()


def session_timeouts(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    known = {"statement_timeout": 1, "lock_timeout": 1, "idle_in_transaction_session_timeout": 1}
    monkeypatch.setattr(database, "session_timeouts", lambda: known | values)


def test_sessions_that_may_hang_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    session_timeouts(monkeypatch, statement_timeout=0, idle_in_transaction_session_timeout=0)
    assert "workload.W007" not in found(), "the database is asked only where it is named"
    (message,) = (m for m in run_checks(databases=["default"]) if m.id == "workload.W007")
    assert "statement_timeout is 0, idle_in_transaction_session_timeout is 0" in message.msg
    assert message.hint is not None
    assert """ALTER ROLE "postgres" SET statement_timeout = '10s';""" in message.hint
    assert """SET idle_in_transaction_session_timeout = '60s';""" in message.hint
    assert "SET lock_timeout" not in message.hint


def test_a_command_that_switches_a_timeout_off_does_not_complain_of_it(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_timeouts(monkeypatch, statement_timeout=0)
    workload(settings, process_kind="migrate")
    assert checks.check_session_timeouts(None, databases=["default"]) == []


@pytest.mark.django_db
def test_sessions_with_timeouts_are_fine() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, '9s', true) FROM unnest(%s::text[]) AS name", [list(database.TIMEOUTS)]
        )
        assert database.session_timeouts() == dict.fromkeys(database.TIMEOUTS, 9_000)
        assert checks.check_session_timeouts(None, databases=["default"]) == []
        cursor.execute("SET LOCAL lock_timeout = 0")
    (message,) = checks.check_session_timeouts(None, databases=["default"])
    assert "lock_timeout is 0" in message.msg


@pytest.mark.django_db(transaction=True)
def test_a_coordinator_says_it_at_its_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session_timeouts(monkeypatch, lock_timeout=0)
    warn_of_missing_timeouts()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert """ALTER ROLE "postgres" SET lock_timeout = '5s';""" in record.getMessage()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> dict[str, int]:
        raise OperationalError

    monkeypatch.setattr(database, "session_timeouts", away)
    warn_of_missing_timeouts()


def test_every_check_says_what_to_do_and_is_listed() -> None:
    source = inspect.getsource(checks)
    used = set(re.findall(r'id="(workload\.[EW]\d{3})"', source))
    listed = set(re.findall(r"^ +(workload\.[EW]\d{3})  ", inspect.getdoc(checks) or "", re.MULTILINE))
    assert used == listed
    assert source.count('id="workload.') == source.count("hint=")
