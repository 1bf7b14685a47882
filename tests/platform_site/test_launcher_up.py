"""``manage.py up``, whole: what a person sees who starts it, kills parts of it, and stops it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]
ROOT = Path(__file__).resolve().parents[2]


class Up:
    """A running ``manage.py up`` and everything it has said."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if "WORKLOAD" not in name and "DATABASE" not in name and "DJANGO" not in name
        }
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            cwd=ROOT,
            env={**kept, "WORKLOAD_DATA_DIR": str(data_dir)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.text = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.text += line
                self._changed.notify_all()

    def wait_for(self, pattern: str) -> str:
        """The first group of the first match, once it has been said."""
        with self._changed:
            found = self._changed.wait_for(lambda: re.search(pattern, self.text), timeout=90)
        assert found, self.text
        return found.group(1) if found.groups() else found.group()

    def finish(self) -> int:
        code = self.process.wait(timeout=90)
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@pytest.fixture
def data_dir() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="up-"))
    made.chmod(0o711)
    yield made
    wait_until(lambda: EmbeddedServer(locate(made)).pid is None, "the database has stopped")
    shutil.rmtree(made)


@pytest.fixture
def start(data_dir: Path) -> Iterator[Callable[..., Up]]:
    started: list[Up] = []

    def run(*arguments: str) -> Up:
        started.append(Up(data_dir, *arguments))
        return started[-1]

    yield run
    for up in started:
        if up.process.poll() is None:
            up.process.kill()
        up.finish()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def processes_of(data_dir: Path) -> list[int]:
    """Every process that carries this data folder in its environment or command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            said = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if os.fsencode(data_dir) in said and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def workers_of(data_dir: Path) -> list[int]:
    return [
        pid
        for pid in processes_of(data_dir)
        if b"manage.py\0worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def test_a_first_start_a_killed_worker_a_clean_end_and_a_second_start(
    start: Callable[..., Up], data_dir: Path
) -> None:
    up = start("--port", "0", "--workers", "1")
    address = up.wait_for(r"ready at (http://127\.0\.0\.1:\d+)")
    password = up.wait_for(r"password (\S+) \(shown once")
    assert (data_dir / "admin_password").read_text().strip() == password
    assert requests.get(f"{address}/health/ready", timeout=10).status_code == 200

    wait_until(lambda: bool(workers_of(data_dir)), "the worker runs")
    worker = workers_of(data_dir)[0]
    os.kill(worker, signal.SIGKILL)
    up.wait_for(r"worker-1 +\| \[ended by SIGKILL; starting it again in 0\.5 s\]")

    up.process.send_signal(signal.SIGINT)
    assert up.finish() == 0, up.text
    assert up.text.rstrip().endswith("Stopped.")
    assert processes_of(data_dir) == []
    assert up.text.count(password) == 1

    again = start("--port", "0", "--workers", "0")
    again.wait_for(r"ready at ")
    assert password not in again.text
    again.process.send_signal(signal.SIGTERM)
    assert again.finish() == 0, again.text


def test_nothing_is_left_of_a_platform_that_is_killed(start: Callable[..., Up], data_dir: Path) -> None:
    up = start("--port", "0", "--workers", "1")
    up.wait_for(r"ready at ")
    assert len(processes_of(data_dir)) > 4
    up.process.kill()
    up.process.wait()
    wait_until(lambda: processes_of(data_dir) == [], "every process is gone, the database last")


def test_a_busy_port_that_was_asked_for_is_a_clear_error(start: Callable[..., Up]) -> None:
    first = start("--port", "0", "--workers", "0")
    port = first.wait_for(r"ready at http://127\.0\.0\.1:(\d+)")
    second = start("--port", port, "--workers", "0")
    assert second.finish() == 1
    assert f"Port {port} on 127.0.0.1 is taken" in second.text
    assert "Traceback" not in second.text
