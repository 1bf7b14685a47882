"""Configuration: what the environment may say, and that every wrong value is named at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from platform_site.configuration import Environment, PlatformSettings
from platform_site.secret_key import stored_secret_key

ROOT = Path(__file__).resolve().parents[2]


def read(values: dict[str, str]) -> tuple[PlatformSettings, Environment]:
    env = Environment(values)
    return PlatformSettings.read(env, data_dir=Path("/data"), embedded=False, process_kind="test"), env


def test_defaults_need_no_environment_and_fit_together() -> None:
    settings, env = read({})
    env.finish()
    assert (settings.heartbeat_interval_ms, settings.lease_duration_ms, settings.offline_after_ms) == (
        5_000,
        15_000,
        15_000,
    )
    assert (settings.web_threads, settings.claim_waiters) == (16, 8)
    assert settings.dispatch_limit == 10_000


def test_values_from_the_environment_win_and_derived_defaults_follow_them() -> None:
    settings, env = read({"WORKLOAD_HEARTBEAT_INTERVAL_MS": " 500 ", "WORKLOAD_WEB_THREADS": "4"})
    env.finish()
    assert settings.heartbeat_interval_ms == 500
    assert settings.offline_after_ms == 1_500
    assert settings.claim_waiters == 2


def test_an_empty_variable_counts_as_absent() -> None:
    settings, env = read({"WORKLOAD_DISPATCH_LIMIT": "", "WORKLOAD_LOG_FORMAT": "  "})
    env.finish()
    assert settings.dispatch_limit == 10_000
    assert settings.log_format == "text"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WORKLOAD_DISPATCH_LIMIT", "many", "'many' is not a whole number"),
        ("WORKLOAD_DISPATCH_LIMIT", "0", "0 is outside 1..1000000"),
        ("WORKLOAD_DISPATCH_LIMIT", "1e3", "'1e3' is not a whole number"),
        ("WORKLOAD_LOG_FORMAT", "xml", "'xml' is not one of text, json"),
        ("WORKLOAD_LEASE_DURATION_MS", "11000", "11000 must exceed two heartbeats plus one second (11000)"),
        ("WORKLOAD_OFFLINE_AFTER_MS", "9000", "9000 must be at least two heartbeats (10000)"),
        ("WORKLOAD_CLAIM_WAITERS", "9", "9 is more than half of WORKLOAD_WEB_THREADS (16)"),
        ("WORKLOAD_LEADER_TIMEOUT_MS", "2000", "2000 must exceed two coordinator passes (2000)"),
        ("WORKLOAD_PAGE_SIZE", "201", "201 is above WORKLOAD_PAGE_SIZE_MAX"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_reason(name: str, value: str, sentence: str) -> None:
    _, env = read({name: value})
    with pytest.raises(ImproperlyConfigured) as refused:
        env.finish()
    assert f"{name}: {sentence}" in str(refused.value)
    assert str(refused.value).startswith("1 setting is wrong:")


def test_all_wrong_values_are_named_at_once() -> None:
    _, env = read({"WORKLOAD_DISPATCH_LIMIT": "x", "WORKLOAD_LOG_LEVEL": "LOUD", "WORKLOAD_WEB_THREADS": "1"})
    with pytest.raises(ImproperlyConfigured) as refused:
        env.finish()
    assert str(refused.value).startswith("3 settings are wrong:")
    for name in ("WORKLOAD_DISPATCH_LIMIT", "WORKLOAD_LOG_LEVEL", "WORKLOAD_WEB_THREADS"):
        assert name in str(refused.value)


@pytest.mark.parametrize(("raw", "meant"), [("1", True), ("Yes", True), ("off", False), ("FALSE", False)])
def test_booleans(raw: str, meant: bool) -> None:
    assert Environment({"X": raw}).boolean("X", not meant) is meant


def test_a_boolean_that_is_neither_is_a_problem() -> None:
    env = Environment({"X": "2"})
    assert env.boolean("X", default=False) is False
    assert env.problems == ["X: '2' is neither true nor false."]


def test_lists_are_divided_by_commas() -> None:
    assert Environment({"X": " a, b ,,c"}).words("X") == ["a", "b", "c"]


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("from the file\n")
    assert Environment({"X_FILE": str(path)}).secret("X") == "from the file"


def test_a_secret_file_that_is_missing_or_empty_or_beside_a_value_is_a_problem(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for values in (
        {"X_FILE": str(tmp_path / "missing")},
        {"X_FILE": str(empty)},
        {"X": "a", "X_FILE": str(empty)},
        {},
    ):
        env = Environment(values)
        env.secret("X")
        assert len(env.problems) == 1, values


def test_the_generated_key_is_made_once_and_for_our_eyes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = stored_secret_key(folder)
    assert len(key) > 64
    assert stored_secret_key(folder) == key
    assert (folder / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["secret_key"]


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if "WORKLOAD" not in name and "DATABASE" not in name
    }
    return subprocess.run(
        [sys.executable, "manage.py", "diffsettings"],
        cwd=ROOT,
        env={**kept, **environment, "DJANGO_SETTINGS_MODULE": "platform_site.settings"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_with_a_database_of_its_own_an_install_must_bring_its_secret_key(tmp_path: Path) -> None:
    done = start(DATABASE_URL="postgresql://db.example/workload", WORKLOAD_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "WORKLOAD_SECRET_KEY: has no default" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_wrong_database_address_is_refused_without_its_password(tmp_path: Path) -> None:
    done = start(
        DATABASE_URL="mysql://root:hunter2@db.example/workload",
        WORKLOAD_SECRET_KEY="k" * 60,
        WORKLOAD_DATA_DIR=str(tmp_path),
        WORKLOAD_DISPATCH_LIMIT="-1",
    )
    assert done.returncode == 1
    assert "DATABASE_URL: must begin with postgresql://" in done.stderr
    assert "WORKLOAD_DISPATCH_LIMIT" in done.stderr
    assert "hunter2" not in done.stderr


def test_the_one_machine_install_needs_no_setting_at_all(tmp_path: Path) -> None:
    done = start(WORKLOAD_DATA_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "postgresql" in done.stdout
    assert (tmp_path / "secret_key").exists()


def test_a_coordinator_connects_past_the_pooler_and_is_cut_when_it_falls_silent(tmp_path: Path) -> None:
    done = start(
        DATABASE_URL="postgresql://pooler.example/workload",
        COORDINATOR_DATABASE_URL="postgresql://direct.example/workload",
        WORKLOAD_PROCESS_KIND="coordinator",
        WORKLOAD_SECRET_KEY="k" * 60,
        WORKLOAD_DATA_DIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    for part in ("direct.example", "idle_session_timeout=3s", "tcp_user_timeout", "workload-coordinator"):
        assert part in done.stdout
    assert "pooler.example" not in done.stdout
