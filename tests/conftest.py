"""The throw-away PostgreSQL of a test session: the controller makes and removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer
from tests.settings import CLUSTER_VARIABLE

UNSAFE_BUT_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "enable_seqscan": "on",  # what the planner chooses by itself is what the tests of indexes look at
    "max_connections": "200",
}
PURE = ("tests/kernel", "tests/workers")
"""Folders whose tests need no database: alone, they start none."""

_server = pytest.StashKey[EmbeddedServer]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the cluster, unless this is a worker, or only pure tests were asked for."""
    folder = os.environ[CLUSTER_VARIABLE]
    if not folder or hasattr(config, "workerinput") or config.option.collectonly or _only_pure(config):
        return
    server = EmbeddedServer(locate(Path(folder)), options=UNSAFE_BUT_FAST)
    server.acquire()
    config.stash[_server] = server


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the cluster and remove its folder."""
    server = config.stash.get(_server, None)
    if server is not None:
        server.release()
        for place in (server.layout.sockets, server.layout.home, Path(os.environ[CLUSTER_VARIABLE])):
            shutil.rmtree(place, ignore_errors=True)


def _only_pure(config: pytest.Config) -> bool:
    root = config.rootpath
    asked = [Path(argument.split("::")[0]) for argument in config.args]
    pure = [root / folder for folder in PURE]
    return bool(asked) and all(
        any((root / path).resolve().is_relative_to(folder) for folder in pure) for path in asked
    )


@pytest.fixture
def spare_server() -> Iterator[EmbeddedServer]:
    """A PostgreSQL of this test alone, to stop and restart as it likes; its address is ``layout.url``."""
    folder = Path(tempfile.mkdtemp(prefix="workload-spare-"))
    folder.chmod(0o711)  # as root the server's user must pass through
    server = EmbeddedServer(locate(folder), options={**UNSAFE_BUT_FAST, "shared_buffers": "32MB"})
    server.acquire()
    yield server
    server.release()
    shutil.rmtree(folder)
