"""Where the embedded server keeps its things. Reads folder modes; creates and changes nothing until asked."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

SYSTEM_HOME = Path("/var/lib/ai-workload-platform")
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107
"""Bytes in the path of a Unix socket, its final zero not counted."""
LOW_USER = "nobody"
"""PostgreSQL refuses to run as root; every system has this user, so none needs to be made."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that the server runs as, where that is not the user of this process."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """``nobody`` for root, else None: the server runs as ourselves."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(LOW_USER)
    return Account(entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one server."""

    home: Path
    sockets: Path
    moved: bool = False
    """The wanted place was closed to the server's user, so the home lies under /var/lib."""

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"

    @property
    def start_lock(self) -> Path:
        return self.home / "postgres.lock"

    @property
    def users_lock(self) -> Path:
        return self.home / "users.lock"

    @property
    def programs(self) -> Path:
        return self.home / "programs"

    @property
    def url(self) -> str:
        """The address, as for DATABASE_URL."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.sockets))}"


def locate(data_dir: Path) -> Layout:
    """The layout of a platform whose data lies in ``data_dir``; the same before and after it exists."""
    data_dir = Path(os.path.abspath(data_dir))
    home, moved = data_dir / "postgres", False
    account = server_account()
    if account is not None and not passable(home.parent, account):
        home, moved = SYSTEM_HOME / _short(data_dir), True
    return Layout(home=home, sockets=_sockets(home), moved=moved)


def passable(folder: Path, account: Account) -> bool:
    """Whether the account may enter every existing folder down to ``folder``; missing ones we make open."""
    for place in (folder, *folder.parents):
        try:
            found = place.stat()
        except FileNotFoundError:
            continue
        if not _may_enter(found, account):
            return False
    return True


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, ours alone; as root, open to pass through, not to read.

    Existing folders keep their mode.
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        try:
            place.mkdir()
        except FileExistsError:
            continue  # another starter was a moment earlier
        place.chmod(mode)  # mkdir's own mode is cut by the umask


def _may_enter(found: os.stat_result, account: Account) -> bool:
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _sockets(home: Path) -> Path:
    sockets = home / "sockets"
    if len(os.fsencode(sockets / SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
        return sockets
    # Neither TMPDIR nor XDG_RUNTIME_DIR: every process must come to the same place, whatever its environment.
    # The name carries our user id, and the folder's owner and mode are checked before it is used.
    return Path("/tmp", f"workload-{os.geteuid()}-{_short(home)}")  # noqa: S108 - see above


def _short(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
