"""Make the data folder, whole or not at all, and refuse one that is not ours to run."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from pathlib import Path

from platform_site.database import TIMEOUTS
from platform_site.embedded.binaries import Binaries
from platform_site.embedded.errors import EmbeddedError, UserUnknown, VersionMismatch
from platform_site.embedded.layout import Account, Layout


def require_named_user() -> None:
    """Raise UserUnknown for a user id without a name, which initdb refuses."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise UserUnknown(
            f"This process runs under user id {os.geteuid()}, which has no name on this system (some "
            "container platforms do that), and PostgreSQL refuses to be set up by it. Set DATABASE_URL to a "
            "PostgreSQL 15 or newer, or run under a user that /etc/passwd lists."
        ) from None


def prepare(layout: Layout, programs: Binaries, *, durable: bool) -> None:
    """Make the cluster if there is none, else check that these programs can run it. Hold the start lock."""
    for leftover in layout.home.glob(f"{layout.data.name}.new-*"):
        shutil.rmtree(leftover)  # someone was killed while making it; it never was a database
    if layout.data.exists():
        _require_version(layout, programs)
        return
    draft = layout.data.with_name(f"{layout.data.name}.new-{os.getpid()}")
    _own_folder(draft, programs.account)
    programs.run("initdb", "-D", draft, *_initdb_options(programs, durable=durable))
    alter = "".join(f"ALTER ROLE postgres SET {name} = '{value}'\n" for name, value in TIMEOUTS.items())
    programs.run("postgres", "--single", "-j", "-D", draft, "postgres", given=alter.replace("\n", ";\n\n"))
    if durable:
        _sync(draft)
    draft.rename(layout.data)
    if durable:
        _sync(layout.home)


def make_sockets(layout: Layout, account: Account | None) -> None:
    """The folder whose mode is the database's only door: 0700, of the server's user, or EmbeddedError."""
    folder = layout.sockets
    if not folder.is_symlink() and not folder.exists():
        _own_folder(folder, account)
    found = folder.lstat()
    owner = account.uid if account else os.geteuid()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or stat.S_IMODE(found.st_mode) & 0o077:
        raise EmbeddedError(
            f"{folder} must be a folder of user id {owner} with mode 0700, because whoever can enter it can "
            "read and change the database. Remove it, and start again."
        )


def _initdb_options(programs: Binaries, *, durable: bool) -> list[str]:
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--data-checksums"]
    if programs.major >= 17:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    else:
        options += ["--locale=C.UTF-8"]
    return options if durable else [*options, "--no-sync"]


def _require_version(layout: Layout, programs: Binaries) -> None:
    made_by = (layout.data / "PG_VERSION").read_text(encoding="ascii").strip()
    if made_by == str(programs.major):
        return
    raise VersionMismatch(
        f"The database in {layout.data} was made by PostgreSQL {made_by}; the programs here are PostgreSQL "
        f"{programs.version}. Nothing was touched. Either go back to the environment that had {made_by}, "
        "or move the content over:\n"
        "  1. in the old environment, while the platform runs:\n"
        f"     pg_dumpall -h {layout.sockets} -U postgres > all.sql\n"
        "  2. with the platform stopped:\n"
        f"     mv {layout.data} {layout.data}.postgresql-{made_by}\n"
        "  3. in the new environment, while the platform runs:\n"
        f"     psql -h {layout.sockets} -U postgres -f all.sql postgres"
    )


def _own_folder(folder: Path, account: Account | None) -> None:
    folder.mkdir(mode=0o700)
    if account is not None:
        os.chown(folder, account.uid, account.gid)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
