from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from dispatch.wakeup import direct_connection
from platform_site.database import DEAD_PEER, configure, database_now, parse_url, require_transaction


def test_a_full_address() -> None:
    parsed = parse_url(
        "postgresql://us%40er:p%2Fw%3A@db.example:6543/work%20load?sslmode=verify-full&connect_timeout=9"
    )
    assert parsed == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "work load",
        "USER": "us@er",
        "PASSWORD": "p/w:",
        "HOST": "db.example",
        "PORT": "6543",
        "OPTIONS": {"sslmode": "verify-full", "connect_timeout": "9"},
    }


def test_a_socket_folder() -> None:
    parsed = parse_url("postgresql://postgres@/postgres?host=/a%20b/sockets")
    assert (parsed["HOST"], parsed["NAME"], parsed["USER"], parsed["PORT"]) == (
        "/a b/sockets",
        "postgres",
        "postgres",
        "",
    )


def test_an_address_in_version_six() -> None:
    parsed = parse_url("postgres://[::1]:5433/workload")
    assert (parsed["HOST"], parsed["PORT"]) == ("::1", "5433")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///file",
        "db.example/workload",
        "postgresql://secret-word@db.example",
        "postgresql://u:secret-word@db.example/",
        "postgresql://u:secret-word@db.example:port/workload",
        "postgresql://u:secret-word@[::1/workload",
        "postgresql://u:secret-word@db.example/a/b",
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        parse_url(url)
    assert "secret-word" not in str(refused.value)


def test_only_web_processes_pool() -> None:
    url = "postgresql://db.example/workload"
    web = configure(url, process_kind="web", web_threads=16)
    assert web["OPTIONS"]["pool"]["max_size"] == 18
    assert web["CONN_MAX_AGE"] == 0
    for kind in ("coordinator", "migrate", "shell", "test"):
        database = configure(url, process_kind=kind, web_threads=16)
        assert "pool" not in database["OPTIONS"]
        assert database["OPTIONS"]["application_name"] == f"workload-{kind}"


@pytest.mark.parametrize("kind", ["web", "coordinator", "migrate", "shell"])
def test_every_process_notices_a_server_that_vanished(kind: str) -> None:
    options = configure("postgresql://db.example/workload", process_kind=kind, web_threads=4)["OPTIONS"]
    names = ("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count")
    assert tuple(options[name] for name in names) == ("1", "5", "2", "3")
    assert options["tcp_user_timeout"] == ("3000" if kind == "coordinator" else "11000")


def test_the_address_may_say_otherwise() -> None:
    url = "postgresql://db.example/workload?keepalives_idle=60&tcp_user_timeout=90000"
    options = configure(url, process_kind="web", web_threads=4)["OPTIONS"]
    assert (options["keepalives_idle"], options["tcp_user_timeout"]) == ("60", "90000")


@pytest.mark.django_db(transaction=True)
def test_the_listeners_own_session_notices_it_too() -> None:
    with direct_connection() as session:
        told = session.info.get_parameters()
    assert {name: told.get(name) for name in DEAD_PEER} == DEAD_PEER


@pytest.mark.parametrize("kind", ["coordinator", "migrate", "web"])
def test_session_parameters_of_the_address_stand(kind: str) -> None:
    url = "postgresql://db.example/workload?options=-c%20lock_timeout%3D4s"
    options = configure(url, process_kind=kind, web_threads=4)["OPTIONS"]
    assert options["options"].startswith("-c lock_timeout=4s")


@pytest.mark.django_db(transaction=True)
def test_the_databases_clock_moves_within_a_transaction() -> None:
    with transaction.atomic():
        first = database_now()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.002)")
        second = database_now()
    assert second - first >= timedelta(milliseconds=2)
    assert abs(second - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_can_be_required() -> None:
    with pytest.raises(RuntimeError, match="open transaction"):
        require_transaction()
    with transaction.atomic():
        require_transaction()


@pytest.mark.django_db(transaction=True)
def test_parameters_are_bound_by_the_server_and_sessions_carry_their_name() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('application_name')")
        assert cursor.fetchone() == ("workload-test",)
    assert connection.settings_dict["OPTIONS"]["server_side_binding"] is True


@pytest.mark.parametrize(
    ("asked", "got"), [("", 3), ("?prepare_threshold=0", 0), ("?prepare_threshold=none", None)]
)
def test_how_soon_statements_are_prepared_is_part_of_the_address(asked: str, got: int | None) -> None:
    database = configure(f"postgresql://u@db.example/workload{asked}", process_kind="web", web_threads=4)
    assert database["OPTIONS"]["prepare_threshold"] == got


def test_a_threshold_that_is_no_number_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold"):
        configure("postgresql://u@db.example/w?prepare_threshold=soon", process_kind="web", web_threads=4)
