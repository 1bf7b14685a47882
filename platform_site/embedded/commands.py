"""Which management commands need the database, and the embedded server for as long as one of them runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

from platform_site.configuration import PlatformSettings
from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer

WITHOUT_DATABASE = frozenset(
    {
        "check",
        "collectstatic",
        "demo",  # it and up run the server themselves, for their whole platform
        "diffsettings",
        "findstatic",
        "help",
        "spectacular",
        "startapp",
        "up",
        "version",
        "worker",  # speaks HTTP only
    }
)


@contextlib.contextmanager
def database_for(arguments: Sequence[str], workload: PlatformSettings) -> Iterator[None]:
    """Run the embedded server meanwhile, if the command needs a database and DATABASE_URL names none.

    Raises EmbeddedError.
    """
    if not workload.embedded_database or not _needs_database(arguments):
        yield
        return
    layout = locate(workload.data_dir)
    if layout.moved and not layout.data.exists():
        sys.stderr.write(f"The database's user cannot enter {workload.data_dir}; using {layout.home}.\n")
    with EmbeddedServer(layout):
        yield


def _needs_database(arguments: Sequence[str]) -> bool:
    if not arguments or arguments[0].startswith("-"):
        return False
    if {"-h", "--help", "--version"}.intersection(arguments):
        return False
    if arguments[0] == "check":
        return "--database" in arguments
    return arguments[0] not in WITHOUT_DATABASE
