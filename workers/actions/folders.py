"""Where actions may read and write: folders named by a run, inside folders named by whoever runs the worker.

`WORKLOAD_ACTIONS_ROOT` holds the work folders, default `<WORKLOAD_DATA_DIR>/work` (`.data/work` without
either).
`WORKLOAD_ACTIONS_READ_ROOT` holds what actions may read besides, default the same. A run that names anything
outside, also through a symbolic link, fails permanently with `path_refused`. Workers that share a run share
these folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from workers.outcome import PermanentFailure


def work_root() -> Path:
    """The folder that holds every work folder."""
    data = Path(os.environ.get("WORKLOAD_DATA_DIR") or ".data")
    return Path(os.environ.get("WORKLOAD_ACTIONS_ROOT") or data / "work").resolve()


def read_root() -> Path:
    """The folder below which sources may lie."""
    named = os.environ.get("WORKLOAD_ACTIONS_READ_ROOT")
    return Path(named).resolve() if named else work_root()


def work_folder(name: str) -> Path:
    """The work folder `name`, made if it is missing."""
    folder = inside(work_root(), name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def inside(root: Path, name: str) -> Path:
    """`name` below `root`, with every link followed; refuses whatever leads out of it."""
    try:
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise PermanentFailure("path_refused", f"{name!r} is not a path") from error
    if not path.is_relative_to(root):
        raise PermanentFailure("path_refused", f"{name!r} lies outside the folder that this worker may use")
    return path


@contextmanager
def replacing(path: Path, *, generation: int) -> Iterator[IO[str]]:
    """Write a file that appears whole or not at all; safe with another attempt writing the same one.

    `generation` keeps the temporary files of two attempts apart.
    """
    temporary = temporary_beside(path, generation=generation)
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_beside(path: Path, *, generation: int) -> Path:
    """A name in the same folder that no other attempt uses."""
    return path.with_name(f".{path.name}.{generation}.{os.getpid()}.tmp")
