from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest
from django.core.checks import run_checks

from platform_site import checks


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


def test_every_check_says_what_to_do_and_is_listed() -> None:
    source = inspect.getsource(checks)
    used = set(re.findall(r'id="(workload\.[EW]\d{3})"', source))
    listed = set(re.findall(r"^ +(workload\.[EW]\d{3})  ", inspect.getdoc(checks) or "", re.MULTILINE))
    assert used == listed
    assert source.count('id="workload.') == source.count("hint=")
