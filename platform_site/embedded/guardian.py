"""A process that outlives the server's users and stops the server if the last of them was killed.

    python -m platform_site.embedded.guardian HOME SOCKETS

Whoever starts the server starts one. It sleeps in the kernel until nobody holds ``users.lock``: normally the
last user has stopped the server by then, and it just ends. It imports nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

from platform_site.embedded import pid_files, stopping
from platform_site.embedded.layout import Layout


def main(home: Path, sockets: Path) -> None:
    """Guard the server that runs there now, in the background; return at once in the caller's process."""
    layout = Layout(home=home, sockets=sockets)
    # Opened once: the folder may be removed while we sleep, and must not come back through us.
    start, users = (os.open(path, os.O_RDWR) for path in (layout.start_lock, layout.users_lock))
    server = pid_files.running_server(layout)
    if os.fork():
        return
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)  # no terminal or pipe of the starter's is kept open
    while server is not None and pid_files.running_server(layout) == server:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        _stop_if_alone(layout, server, start, users)


def _stop_if_alone(layout: Layout, server: int, start: int, users: int) -> None:
    """In the order of everyone else: the start lock first, so that nobody begins to use what we stop."""
    fcntl.flock(start, fcntl.LOCK_EX)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # a new user came in between
    else:
        if pid_files.running_server(layout) == server:
            stopping.stop(layout)
    finally:
        fcntl.flock(users, fcntl.LOCK_UN)
        fcntl.flock(start, fcntl.LOCK_UN)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
