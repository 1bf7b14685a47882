"""Become another program that the kernel kills when our parent dies, however it dies.

    python -S leash.py PARENT PROGRAM ARGUMENT...

A step of its own after exec, because little is safe to run between fork and exec in a process with threads.
Linux alone has this; elsewhere the program runs without its leash. The kernel watches the parent's *thread*
that started us, so that thread must live as long.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, program: list[str]) -> None:
    """Put the leash on and become the program."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent:  # it died before the leash was on
            sys.exit(1)
    os.execv(program[0], program)  # noqa: S606 - the caller's own program, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
