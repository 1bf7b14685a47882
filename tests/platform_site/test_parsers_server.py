"""Bodies in chunks through the real server: what the parser trusts about its input, gunicorn must keep."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.platform_site.waiting import wait_until

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, place: Path) -> None:
        super().__init__("localhost", timeout=20)
        self.place = place

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(str(self.place))


def listens(place: Path) -> bool:
    try:
        with closing(UnixConnection(place)) as connection:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("s") / "web"
    options = [
        "--worker-class",
        "gthread",
        "--threads",
        "2",
        "--bind",
        f"unix:{place}",
        "--log-level",
        "warning",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *options, "platform_site.wsgi:application"],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.platform_site.furniture_settings"},
    )
    try:
        wait_until(lambda: listens(place), seconds=30)
        yield place
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0


@pytest.fixture
def connection(server: Path) -> Iterator[UnixConnection]:
    with closing(UnixConnection(server)) as connection:
        yield connection


def test_a_body_in_chunks_arrives(connection: UnixConnection) -> None:
    parts = [b'{"a": [1', b", 2]", b"}"]
    connection.request("POST", "/api/v1/document", body=iter(parts), headers=JSON, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 200
    assert json.load(response) == {"a": [1, 2]}


@pytest.mark.parametrize("chunked", [True, False])
def test_a_client_that_sends_too_much_reads_the_413(connection: UnixConnection, chunked: bool) -> None:
    if chunked:
        parts = (b" " * 50_000 for _ in range(7))
        connection.request("POST", "/api/v1/document", body=parts, headers=JSON, encode_chunked=True)
    else:
        connection.request("POST", "/api/v1/document", body=b" " * 350_000, headers=JSON)
    response = connection.getresponse()
    assert response.status == 413
    assert json.load(response)["error"]["code"] == "body_too_large"
