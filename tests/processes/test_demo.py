"""``manage.py demo`` as a newcomer runs it: to its end, twice, on one's own folder, and interrupted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_site.embedded.layout import locate
from tests.platform_site.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="workload-demo-"))
    yield folder
    layout = locate(folder)
    for place in (layout.sockets, layout.home, folder):
        shutil.rmtree(place, ignore_errors=True)


def _start(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if "WORKLOAD" not in name and "DATABASE" not in name and "DJANGO" not in name
    }
    return subprocess.Popen(
        [sys.executable, "manage.py", "demo", *arguments],
        cwd=ROOT,
        env={**kept, "WORKLOAD_DATA_DIR": str(data_dir), "COLUMNS": "160"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _run(data_dir: Path, *arguments: str) -> tuple[int, str]:
    process = _start(data_dir, *arguments)
    try:
        said, _ = process.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


def test_it_loses_a_worker_and_ends_well_and_works_again_at_once(data_dir: Path) -> None:
    code, said = _run(data_dir, "--exit", "--port", "0")
    assert code == 0, said
    killed = re.search(r"Killed (worker-\d) .* while it held (\d+) lease", said)
    assert killed is not None, said
    assert "40 of 40 tasks done" in said
    held = int(killed[2])
    table = said[said.index("Attempts that were interrupted") :]
    lost = re.findall(rf"│ [a-z0-9-]+ +│ \d+ +│ {killed[1]} +│ \d+ +│ worker-\d +│", table)
    assert 0 < len(lost) <= held, said  # a result on its way when the worker was stopped still counts
    assert re.search(r"password \S+", said), said
    assert "/admin/" in said

    code, said = _run(data_dir, "--exit", "--port", "0")
    assert code == 0, said


def test_it_indexes_a_folder_of_ones_own(data_dir: Path, tmp_path: Path) -> None:
    for number in range(80):
        pool = "Connections are pooled so that a database is not overwhelmed." if number == 7 else "Nothing."
        (tmp_path / f"note-{number}.txt").write_text(f"Note {number}\n\n{pool}\n", encoding="utf-8")
    code, said = _run(data_dir, "--exit", "--port", "0", "--folder", str(tmp_path))
    assert code == 0, said
    assert "note-7" in said or "Note 7" in said


def test_a_folder_that_is_not_there_is_said_before_anything_starts(data_dir: Path) -> None:
    code, said = _run(data_dir, "--exit", "--folder", "/nowhere/at/all")
    assert code != 0
    assert "is not a folder" in said
    assert "Starting" not in said


def test_a_port_that_is_taken_and_was_asked_for_is_said(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = _run(data_dir, "--exit", "--port", str(taken.getsockname()[1]))
    assert code != 0
    assert "Traceback" not in said
    assert "taken" in said or "in use" in said


def test_ctrl_c_in_the_middle_stops_everything(data_dir: Path) -> None:
    process = _start(data_dir, "--port", "0")
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if "tasks done" in line:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=60)
    assert "Stopped." in rest, "".join(said) + rest
    assert "Traceback" not in rest
    marker = f"WORKLOAD_DATA_DIR={data_dir}".encode()

    def nothing_left() -> bool:
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if marker in environment.read_bytes():
                    return False
            except OSError:  # it ended while we looked
                continue
        return True

    wait_until(nothing_left, seconds=30)
