"""Start, share and stop one PostgreSQL server for this machine's processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from platform_site.embedded import binaries, cluster, guardian, locks, pid_files, stopping
from platform_site.embedded.errors import StartFailed
from platform_site.embedded.layout import Layout, make_folder, server_account

OPTIONS: Mapping[str, str] = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    # A fresh install has no statistics, so a table that will be large looks small; a plan that reads it whole would
    # then be kept by every session until the first ANALYZE. Every statement here has an index to go by.
    "enable_seqscan": "off",
    "autovacuum_naptime": "5s",  # the queue tables turn over within seconds; their dead rows must not wait a minute
    "jit": "off",  # compiling costs more than any of our statements takes
    "log_error_verbosity": "terse",  # details quote rows, which belong to tenants
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] %a ",
}
START_SECONDS = 60.0
LOG_LIMIT_BYTES = 16 * 2**20


class EmbeddedServer:
    """One process's use of the server: ``acquire`` starts it or attaches, the last ``release`` stops it.

    Any number of processes may do so at once. Not for use from several threads.
    """

    def __init__(self, layout: Layout, *, options: Mapping[str, str] | None = None) -> None:
        self.layout = layout
        self.started = False
        """This process started the server, rather than finding it running."""
        self._options = {**OPTIONS, **(options or {})}
        self._users = locks.SharedLock(layout.users_lock)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def users_descriptor(self) -> int:
        """Hand this to child processes that use the server too, so that it lives as long as any of them."""
        return self._users.descriptor

    @property
    def pid(self) -> int | None:
        """The server's process id, while it runs."""
        return pid_files.running_server(self.layout)

    def acquire(self) -> None:
        """Use the server, starting it if it does not run. Raises EmbeddedError."""
        cluster.require_named_user()
        make_folder(self.layout.home)
        with locks.exclusive(self.layout.start_lock):
            self._users.acquire()
            try:
                self._start_or_attach()
            except BaseException:
                self._leave()
                raise

    def release(self) -> None:
        """Stop using the server; the last user stops it. Raises StartFailed if it will not stop."""
        if not self._users.held:
            return
        with locks.exclusive(self.layout.start_lock):
            self._leave()

    def _leave(self) -> None:
        try:
            if self._users.alone():
                self._stop()
            elif self._process is not None and self._process.poll() is None:
                # Still our child: someone has to take note of its end when another user stops it.
                threading.Thread(target=self._process.wait, name="postgres-child", daemon=True).start()
        finally:
            self._users.release()

    def _start_or_attach(self) -> None:
        programs = binaries.find(account=server_account(), copies=self.layout.programs)
        if self._ready(programs):
            self.started = False
            return
        durable = self._options.get("fsync", "on") != "off"
        cluster.prepare(self.layout, programs, durable=durable)
        cluster.make_sockets(self.layout, programs.account)
        self._start(programs)
        self.started = True
        self._set_guardian()

    def _start(self, programs: binaries.Binaries) -> None:
        """Run the server until it answers; again while remains of a killed one hold its memory block."""
        deadline = time.monotonic() + START_SECONDS
        log_start = self._turn_log()
        while not self._ready(programs):
            pid_files.adopt_stale(self.layout)
            self._process = self._spawn(programs)
            while self._process.poll() is None:
                if self._ready(programs):
                    return
                if time.monotonic() > deadline:
                    self._process.send_signal(signal.SIGQUIT)
                    self._process.wait()
                    break
                time.sleep(0.02)
            if time.monotonic() > deadline or not self._worth_another_try(log_start):
                raise StartFailed(
                    f"PostgreSQL did not start. {self.layout.log} ends:\n{self._log_tail(log_start)}"
                )
            time.sleep(0.2)

    def _spawn(self, programs: binaries.Binaries) -> subprocess.Popen[bytes]:
        account = programs.account
        settings = [part for name, value in self._options.items() for part in ("-c", f"{name}={value}")]
        arguments = programs.command("postgres", "-D", self.layout.data, "-k", self.layout.sockets, *settings)
        descriptor = os.open(self.layout.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own program, no shell
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=binaries.ENVIRONMENT,
                # A session of its own: Ctrl-C in our terminal must not reach it beside us.
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )

    def _ready(self, programs: binaries.Binaries) -> bool:
        command = programs.command("pg_isready", "-q", "-h", self.layout.sockets, "-U", "postgres", "-t", "5")
        return subprocess.run(command, cwd="/", env=binaries.ENVIRONMENT, check=False).returncode == 0  # noqa: S603

    def _set_guardian(self) -> None:
        """Users that are killed cannot stop the server as the last one out; the guardian then does."""
        root = Path(__file__).resolve().parents[2]
        subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-S", "-m", guardian.__name__, str(self.layout.home), str(self.layout.sockets)],
            env={**binaries.ENVIRONMENT, "PYTHONPATH": str(root)},
            cwd="/",
            stdin=subprocess.DEVNULL,
            check=True,
            start_new_session=True,
        )

    def _stop(self) -> None:
        """Stop the server if it runs. Hold the start lock."""
        young = self._process is not None and self._process.poll() is None
        if self._process is not None and young and self.pid is None:  # it has not written its number yet
            self._process.send_signal(signal.SIGINT)
        else:
            stopping.stop(self.layout)
        if self._process is not None and young:
            self._process.wait(timeout=stopping.STOP_SECONDS)

    def _turn_log(self) -> int:
        """Keep one old log; return where the new lines will begin."""
        log = self.layout.log
        size = log.stat().st_size if log.exists() else 0
        if size < LOG_LIMIT_BYTES:
            return size
        shutil.move(log, log.with_suffix(".log.old"))
        return 0

    def _worth_another_try(self, log_start: int) -> bool:
        said = self._log_tail(log_start)
        return "pre-existing shared memory block" in said or "already exists" in said

    def _log_tail(self, start: int) -> str:
        return _tail(self.layout.log, start)


def _tail(log: Path, start: int, *, lines: int = 15) -> str:
    if not log.exists():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - 64 * 1024))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
