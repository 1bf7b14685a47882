from __future__ import annotations

import socket

import pytest

from platform_site.launcher.ports import PortTaken, listen


@pytest.fixture
def taken() -> socket.socket:
    return listen("127.0.0.1", 0, exactly=True)


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def test_a_free_port_is_taken_as_asked() -> None:
    with listen("127.0.0.1", 0, exactly=True) as first:
        wanted = port_of(first)
    with listen("127.0.0.1", wanted, exactly=False) as listener:
        assert port_of(listener) == wanted


def test_a_busy_port_gives_way_to_a_free_one(taken: socket.socket) -> None:
    with taken, listen("127.0.0.1", port_of(taken), exactly=False) as listener:
        assert port_of(listener) != port_of(taken)


def test_a_busy_port_that_was_asked_for_by_name_is_an_error(taken: socket.socket) -> None:
    with taken, pytest.raises(PortTaken, match=rf"Port {port_of(taken)} on 127\.0\.0\.1 is taken.*--port"):
        listen("127.0.0.1", port_of(taken), exactly=True)


def test_an_address_of_another_machine_is_an_error_not_another_port() -> None:
    with pytest.raises(PortTaken, match=r"Cannot listen on 192\.0\.2\.1"):
        listen("192.0.2.1", 0, exactly=False)
