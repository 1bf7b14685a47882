"""``manage.py coordinator`` as real processes: it ends when asked, and is followed when it cannot answer."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from dispatch.models import Leadership
from tests.support.programs import running
from tests.support.races import new_session, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

QUICK = {"WORKLOAD_COORDINATOR_PASS_MS": "100", "WORKLOAD_LEADER_TIMEOUT_MS": "1000"}
"""A leader counts as silent after one second: well before the server ends an idle session by itself."""


def _leader() -> tuple[str, int, bool]:
    row = Leadership.objects.filter(id=1).first()
    return (row.holder, row.epoch, row.beat_at is not None) if row else ("", 0, False)


def _leads(holder: str, epoch: int) -> None:
    wait_for(lambda: _leader() == (holder, epoch, True), f"{holder} leads under epoch {epoch}", timeout=30)


class Manager:
    """The socket on which systemd would listen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(30)

    def hears(self, state: str) -> None:
        """Wait for that message; watchdog pings may come before it."""
        while (heard := self._socket.recv(100).decode()) != state:
            assert heard == "WATCHDOG=1"

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(tmp_path / "notify")
    yield manager
    manager.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_when_asked_and_gives_up_leadership(
    tmp_path: Path, systemd: Manager, number: signal.Signals
):
    supervised = {"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "10000000"}
    with running("coordinator", "--name", "one", log_file=tmp_path / "log", environment=supervised) as one:
        systemd.hears("READY=1")
        _leads("one", 1)
        systemd.hears("WATCHDOG=1")
        one.send(number)
        assert one.ended(timeout=5) == 0
        systemd.hears("STOPPING=1")
        assert _leader() == ("one", 1, False)
        assert "Leading." in one.log
        assert "Traceback" not in one.log


def test_a_stopped_leader_is_followed_and_stands_by_when_it_awakes(tmp_path: Path):
    with (
        running("coordinator", "--name", "one", log_file=tmp_path / "one", environment=QUICK) as one,
        running("coordinator", "--name", "two", log_file=tmp_path / "two", environment=QUICK) as two,
    ):
        wait_for(lambda: _leader()[1] == 1, "one of them leads", timeout=30)
        leader, standby = (one, two) if _leader()[0] == "one" else (two, one)
        names = {one: "one", two: "two"}
        with new_session() as observer:  # the other must be at the door before the leader is stopped
            wait_for(
                lambda: (
                    len(
                        observer.execute(
                            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'workload-coordinator'"
                            " AND datname = current_database()"
                        ).fetchall()
                    )
                    == 2
                ),
                "both have a session",
                timeout=30,
            )
        leader.send(signal.SIGSTOP)
        _leads(names[standby], 2)
        assert f"{names[leader]} had been silent" in standby.log

        leader.send(signal.SIGCONT)
        leader.wait_for_log("Stepping down")
        assert _leader() == (names[standby], 2, True)

        standby.send(signal.SIGTERM)
        assert standby.ended(timeout=5) == 0
        _leads(names[leader], 3)
        leader.send(signal.SIGTERM)
        assert leader.ended(timeout=5) == 0


def test_a_killed_leader_is_followed(tmp_path: Path):
    with (
        running("coordinator", "--name", "one", log_file=tmp_path / "one", environment=QUICK) as one,
    ):
        _leads("one", 1)
        with running("coordinator", "--name", "two", log_file=tmp_path / "two", environment=QUICK):
            one.send(signal.SIGKILL)
            _leads("two", 2)


def test_it_outlives_its_session(tmp_path: Path):
    with running("coordinator", "--name", "one", log_file=tmp_path / "log") as one:
        _leads("one", 1)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(backend_pid, 5000) FROM dispatch_leadership")
        _leads("one", 2)
        assert one.process.poll() is None
