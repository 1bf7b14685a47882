"""PostgreSQL's two pid files, and whom they name.

They are never deleted: ``postmaster.pid`` also names the shared memory block that keeps two servers off one
folder. After a container restart or a kill -9 the number in them may belong to anyone, and PostgreSQL then
refuses to start. It does take its parent's number as stale, and still checks the memory block; so that
is what is written into them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from platform_site.embedded.layout import SOCKET_NAME, Layout


def running_server(layout: Layout) -> int | None:
    """The process id of our server, or None: dead, or the number belongs to someone else."""
    pid = _number(layout.data / "postmaster.pid")
    return pid if pid is not None and is_server(pid, layout) else None


def is_server(pid: int, layout: Layout) -> bool:
    """Whether that process is the server of this very data folder; a dead child not yet waited for is not."""
    words = _command_line(pid)
    if b"-D" not in words[:-1]:
        return False
    folder = words[words.index(b"-D") + 1]
    try:
        return os.path.samefile(folder, layout.data)  # it may have been started by another name of the folder
    except OSError:
        return False


def adopt_stale(layout: Layout) -> None:
    """Write our own number into pid files whose process is not our server."""
    for path in (layout.data / "postmaster.pid", layout.sockets / f"{SOCKET_NAME}.lock"):
        pid = _number(path)
        if pid is not None and pid != os.getpid() and not is_server(pid, layout):
            _renumber(path)


def _number(path: Path) -> int | None:
    try:
        first = path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
    except FileNotFoundError:
        return None
    # PostgreSQL writes a minus before the number of a single-user server.
    return abs(int(first)) if first.strip().lstrip("-").isdigit() else None


def _renumber(path: Path) -> None:
    """In place and never shorter than whole: an emptied pid file would lock the folder for good."""
    with path.open("r+b") as file:
        rest = file.read().partition(b"\n")[2]
        content = b"%d\n%s" % (os.getpid(), rest)
        file.seek(0)
        file.write(content)
        file.truncate()


def _command_line(pid: int) -> list[bytes]:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return []
    asked = ["ps", "-o", "args=", "-ww", "-p", str(pid)]  # macOS has no /proc
    return subprocess.run(asked, capture_output=True, check=False).stdout.split()  # noqa: S603
