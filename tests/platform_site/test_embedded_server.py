"""The embedded server, with real processes on folders of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from platform_site.database import TIMEOUTS
from platform_site.embedded import pid_files
from platform_site.embedded.errors import EmbeddedError, StartFailed, VersionMismatch
from platform_site.embedded.layout import SOCKET_NAME, Layout, locate
from platform_site.embedded.server import EmbeddedServer

QUICK = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "20"}
ROOT = Path(__file__).resolve().parents[2]
USER = """
import sys
from pathlib import Path
from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer
with EmbeddedServer(locate(Path(sys.argv[1])), options={"fsync": "off", "shared_buffers": "16MB"}) as server:
    print("started" if server.started else "attached", flush=True)
    sys.stdin.read()
"""
HANDING_ON = """
import subprocess, sys
from pathlib import Path
from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer
with EmbeddedServer(locate(Path(sys.argv[1])), options={"fsync": "off", "shared_buffers": "16MB"}) as server:
    child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, pass_fds=[server.users_descriptor])
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short folder that the server's user may enter; pytest's own is closed to it."""
    made = Path(tempfile.mkdtemp(prefix="embedded-"))
    made.chmod(0o711)
    yield made
    server = EmbeddedServer(locate(made))
    if server.pid is not None:
        os.kill(server.pid, signal.SIGQUIT)
        wait_until(lambda: server.pid is None, "the server is gone")
    shutil.rmtree(server.layout.sockets, ignore_errors=True)
    shutil.rmtree(made)


@pytest.fixture
def layout(folder: Path) -> Layout:
    return locate(folder)


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}"
        time.sleep(0.01)


def ask(layout: Layout, statement: str) -> str:
    with psycopg.connect(layout.url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return str(row[0])


def do(layout: Layout, statement: str) -> None:
    with psycopg.connect(layout.url, autocommit=True) as connection:
        connection.execute(statement)


def start_user(folder: Path, program: str = USER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def said(user: subprocess.Popen[str]) -> str:
    assert user.stdout is not None
    return user.stdout.readline().strip()


def leave(user: subprocess.Popen[str]) -> None:
    user.communicate(timeout=40)
    assert user.returncode == 0


def test_first_start_makes_a_safe_cluster_and_the_last_release_stops_it(layout: Layout) -> None:
    with EmbeddedServer(layout) as server:
        assert server.started
        assert ask(layout, "SHOW fsync") == "on"
        assert ask(layout, "SHOW data_checksums") == "on"
        assert ask(layout, "SHOW listen_addresses") == ""
        assert ask(layout, "SHOW server_encoding") == "UTF8"
        assert {name: ask(layout, f"SHOW {name}") for name in TIMEOUTS} == {
            "statement_timeout": "10s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "1min",
        }
        assert layout.sockets.stat().st_mode & 0o777 == 0o700
        assert layout.data.stat().st_mode & 0o777 == 0o700
        assert layout.log.stat().st_mode & 0o777 == 0o600
        pid = server.pid
        assert pid is not None
        assert os.getsid(pid) != os.getsid(0), "Ctrl-C in our terminal must not reach the server"
        assert os.stat(f"/proc/{pid}").st_uid != 0, "PostgreSQL never runs as root"
    assert server.pid is None
    assert not (layout.data / "postmaster.pid").exists()


def test_another_user_attaches_and_the_last_one_out_stops_the_server(folder: Path, layout: Layout) -> None:
    with EmbeddedServer(layout, options=QUICK) as server:
        other = start_user(folder)
        assert said(other) == "attached"
    assert server.pid is not None, "one user is left"
    assert ask(layout, "SELECT 1") == "1"
    leave(other)
    assert server.pid is None


def test_three_starters_at_once_make_one_server(folder: Path, layout: Layout) -> None:
    users = [start_user(folder) for _ in range(3)]
    assert sorted(said(user) for user in users) == ["attached", "attached", "started"]
    for user in users:
        assert EmbeddedServer(layout).pid is not None
        leave(user)
    assert EmbeddedServer(layout).pid is None


def test_data_survives_kill_9_of_the_server(layout: Layout) -> None:
    with EmbeddedServer(layout, options={"shared_buffers": "16MB"}) as server:
        do(layout, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
        with psycopg.connect(layout.url):  # an open session: its process outlives the server's for a moment
            pid = server.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            with EmbeddedServer(layout, options={"shared_buffers": "16MB"}) as again:
                assert again.started
                assert again.pid != pid
                assert ask(layout, "SELECT count(*) FROM kept") == "1000"


def test_a_killed_user_leaves_no_server_behind(folder: Path, layout: Layout) -> None:
    user = start_user(folder)
    assert said(user) == "started"
    server = EmbeddedServer(layout)
    assert server.pid is not None
    user.kill()
    user.communicate()
    wait_until(lambda: server.pid is None, "the guardian has stopped the server")
    assert not (layout.data / "postmaster.pid").exists(), "stopped in order, not killed"


def test_a_killed_starter_does_not_take_the_server_from_others(folder: Path, layout: Layout) -> None:
    starter = start_user(folder)
    assert said(starter) == "started"
    other = start_user(folder)
    assert said(other) == "attached"
    starter.kill()
    starter.communicate()
    assert ask(layout, "SELECT 1") == "1"
    leave(other)
    assert EmbeddedServer(layout).pid is None


def test_the_server_lives_as_long_as_a_child_that_was_handed_the_descriptor(
    folder: Path, layout: Layout
) -> None:
    parent = start_user(folder, HANDING_ON)
    child = int(said(parent))
    parent.kill()
    parent.communicate()
    server = EmbeddedServer(layout)
    assert ask(layout, "SELECT 1") == "1"
    assert server.pid is not None
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: server.pid is None, "the guardian has stopped the server")


def test_stale_pid_files_naming_a_foreign_process_are_taken_over_not_deleted(layout: Layout) -> None:
    with EmbeddedServer(layout, options=QUICK):
        do(layout, "CREATE TABLE kept AS SELECT 1 AS number")
        kept = {
            path: path.read_text()
            for path in (layout.data / "postmaster.pid", lock_file(layout))
            if path.exists()
        }
    assert len(kept) == 2
    with subprocess.Popen(["sleep", "600"]) as foreign:
        for path, text in kept.items():
            path.write_text(text.replace(text.split("\n", 1)[0], str(foreign.pid), 1))
        with EmbeddedServer(layout, options=QUICK) as server:
            assert server.started
            assert ask(layout, "SELECT count(*) FROM kept") == "1"
        assert foreign.poll() is None, "whoever has that number is none of our business"
        foreign.kill()


def test_the_server_is_known_by_another_name_of_its_folder(folder: Path, layout: Layout) -> None:
    with EmbeddedServer(layout, options=QUICK) as server:
        alias = folder.with_name(f"{folder.name}-alias")
        alias.symlink_to(folder)
        try:
            other = EmbeddedServer(locate(alias))
            assert other.pid == server.pid
            with other:
                assert not other.started
        finally:
            alias.unlink()


def lock_file(layout: Layout) -> Path:
    return layout.sockets / f"{SOCKET_NAME}.lock"


def test_a_pid_file_keeps_every_other_line(tmp_path: Path) -> None:
    layout = Layout(home=tmp_path, sockets=tmp_path / "sockets")
    layout.data.mkdir()
    layout.sockets.mkdir()
    path = layout.data / "postmaster.pid"
    path.write_text(f"{2**22 - 1}\n/data\n1700000000\n5432\n/sockets\n\n  1234567   7\nready   \n")
    pid_files.adopt_stale(layout)
    assert (
        path.read_text() == f"{os.getpid()}\n/data\n1700000000\n5432\n/sockets\n\n  1234567   7\nready   \n"
    )


def test_leftovers_of_a_killed_initdb_are_removed_and_no_database(layout: Layout) -> None:
    leftover = layout.home / "data.new-12345"
    leftover.mkdir(parents=True)
    (leftover / "PG_VERSION").write_text("18\n")
    layout.home.chmod(0o711)
    with EmbeddedServer(layout, options=QUICK):
        assert ask(layout, "SELECT 1") == "1"
    assert not leftover.exists()


def test_another_major_version_is_refused_and_nothing_touched(layout: Layout) -> None:
    with EmbeddedServer(layout, options=QUICK):
        pass
    version = layout.data / "PG_VERSION"
    version.write_text("13\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in layout.data.rglob("*"))
    with pytest.raises(VersionMismatch) as refused:
        EmbeddedServer(layout).acquire()
    for part in ("PostgreSQL 13", "PostgreSQL 18", "pg_dumpall", "psql", str(layout.data)):
        assert part in str(refused.value)
    assert sorted((path, path.stat().st_mtime_ns) for path in layout.data.rglob("*")) == before


def test_a_server_that_cannot_start_says_why_and_can_be_tried_again(layout: Layout) -> None:
    with pytest.raises(StartFailed, match="shared_buffers"):
        EmbeddedServer(layout, options={"shared_buffers": "nonsense"}).acquire()
    with EmbeddedServer(layout, options=QUICK) as server:
        assert server.started


def test_a_socket_folder_that_others_may_enter_is_refused(layout: Layout) -> None:
    with EmbeddedServer(layout, options=QUICK):
        pass
    layout.sockets.chmod(0o755)
    with pytest.raises(EmbeddedError, match="mode 0700"):
        EmbeddedServer(layout).acquire()


def test_a_deep_folder_gets_a_short_socket_path(folder: Path) -> None:
    deep = folder / ("d" * 60) / ("e" * 60)
    layout = locate(deep)
    try:
        with EmbeddedServer(layout, options=QUICK) as server:
            assert server.started
            assert ask(layout, "SELECT 1") == "1"
            assert layout.data.is_relative_to(deep)
            assert len(os.fsencode(layout.sockets / SOCKET_NAME)) < 108
    finally:
        shutil.rmtree(layout.sockets)
