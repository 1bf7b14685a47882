"""Advisory file locks. The kernel frees them when their holder dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the file alone, waiting for whoever holds it; whoever does is starting or stopping the server."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class SharedLock:
    """One user's share of a file. Not kept across exec unless its descriptor is handed on explicitly."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """For ``pass_fds``: a child that inherits it keeps this user counted until the child ends too."""
        if self._descriptor is None:
            raise RuntimeError(f"{self._path} is not held.")
        return self._descriptor

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self) -> None:
        """Become one of its users."""
        descriptor = _open(self._path)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._descriptor = descriptor

    def alone(self) -> bool:
        """Whether nobody else holds it; if so it is now held exclusively, else our share is gone."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Stop being a user; harmless if we are none."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
