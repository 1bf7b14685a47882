"""The project's own commands as real processes against the test database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import connection

from tests.support.races import wait_for

ROOT = Path(__file__).resolve().parents[2]


def database_url() -> str:
    """The address of the database that this test uses."""
    values = connection.settings_dict
    account = quote(str(values["USER"]))
    if values["PASSWORD"]:
        account += f":{quote(str(values['PASSWORD']))}"
    query = urlencode({name: values[name.upper()] for name in ("host", "port") if values[name.upper()]})
    return f"postgresql://{account}@/{quote(str(values['NAME']))}?{query}"


class Program:
    """One running command; what it wrote to standard error is in ``log``."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.process = process
        self._log_file = log_file

    @property
    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self, *, timeout: float) -> int:
        """The exit status; AssertionError with the log when it still runs after ``timeout`` seconds."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"Still running after {timeout} s:\n{self.log}") from error

    def wait_for_log(self, text: str, *, timeout: float = 30) -> None:
        def said() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"It ended with {self.process.returncode}:\n{self.log}")
            return text in self.log

        wait_for(said, f"{text!r} in the log", timeout=timeout)


@contextmanager
def running(
    *arguments: str, log_file: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """``manage.py`` with these arguments until the block ends; then killed if it still runs or is stopped."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("WORKLOAD_") and name != "DJANGO_SETTINGS_MODULE"
    }
    own = {
        "DATABASE_URL": database_url(),
        "WORKLOAD_SECRET_KEY": settings.SECRET_KEY,
        **(environment or {}),
    }
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**inherited, **own},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield Program(process, log_file)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
