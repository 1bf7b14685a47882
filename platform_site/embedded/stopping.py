"""Stop a running server, whoever started it."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from platform_site.embedded import pid_files
from platform_site.embedded.errors import StartFailed
from platform_site.embedded.layout import Layout

STOP_SECONDS = 30.0


def stop(layout: Layout) -> None:
    """Fast shutdown: sessions are ended, a checkpoint is written. Hold the start lock.

    Raises StartFailed if the server is still there after STOP_SECONDS.
    """
    pid = pid_files.running_server(layout)
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while pid_files.is_server(pid, layout):
        if time.monotonic() > deadline:
            raise StartFailed(
                f"PostgreSQL (process {pid}) did not stop within {STOP_SECONDS:.0f} s; see {layout.log}."
            )
        time.sleep(0.02)
