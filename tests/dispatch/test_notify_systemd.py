from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator

import pytest

from dispatch.notify_systemd import SystemdNotifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path) -> Iterator[tuple[str, socket.socket]]:
    name = f"workload-test-{secrets.token_hex(6)}"
    address, bound = (str(tmp_path / name),) * 2 if request.param == "path" else (f"@{name}", f"\0{name}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(bound)
        listening.settimeout(5)
        yield address, listening


def _heard(listening: socket.socket) -> str:
    return listening.recv(100).decode()


def test_states_arrive_in_order(manager):
    address, listening = manager
    notifier = SystemdNotifier.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    notifier.ready()
    notifier.alive()
    notifier.stopping()
    assert [_heard(listening) for _ in range(3)] == ["READY=1", "WATCHDOG=1", "STOPPING=1"]


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid() + 1)}],
    ids=["no watchdog", "another's watchdog"],
)
def test_without_a_watchdog_of_ours_nobody_is_pinged(manager, environment):
    address, listening = manager
    notifier = SystemdNotifier.from_environment({"NOTIFY_SOCKET": address, **environment})
    notifier.alive()
    notifier.stopping()
    assert _heard(listening) == "STOPPING=1"


def test_outside_systemd_nothing_is_sent():
    SystemdNotifier.from_environment({}).ready()


def test_a_manager_that_does_not_listen_is_logged_and_stops_nothing(tmp_path, caplog):
    SystemdNotifier(str(tmp_path / "nobody")).ready()
    assert "could not be told READY=1" in caplog.text
