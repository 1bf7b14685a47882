"""The one-machine platform as one object: start it, talk to it, stop it."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import requests
from django.conf import settings

from platform_site.configuration import PlatformSettings
from platform_site.embedded.layout import locate
from platform_site.embedded.server import EmbeddedServer
from platform_site.launcher import first_start, ports
from platform_site.launcher.children import Child, Command, Output, Supervisor
from platform_site.launcher.first_start import Credentials
from platform_site.secret_key import FILE_NAME as SECRET_KEY_FILE

DEFAULT_PORT = 8000
READY_SECONDS = 60.0
ROOT = Path(__file__).resolve().parents[2]


class LauncherError(Exception):
    """The platform did not come up; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformOptions:
    """What may differ from one start to the next."""

    host: str = "127.0.0.1"
    port: int | None = None
    """None: 8000, or a free one near it. A given port must be free."""
    workers: int = 2
    worker_kinds: Sequence[str] = ("python", "mock")
    worker_concurrency: int = 16
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables for every child: shorter leases for a demonstration, for example."""


class Platform:
    """Database, web, coordinator and workers. ``start`` returns when the API answers.

    ``output(name, line)`` gets every line a child says, from several threads; ``announce(sentence)`` what the
    launcher itself has to say. Use it as a context manager, or call ``stop`` whatever happens.
    """

    def __init__(self, options: PlatformOptions, *, output: Output, announce: Callable[[str], None]) -> None:
        self.options = options
        self._output = output
        self._announce = announce
        self._workload: PlatformSettings = settings.WORKLOAD
        self._server: EmbeddedServer | None = None
        self._socket: socket.socket | None = None
        self._credentials: Credentials | None = None
        self._supervisor: Supervisor | None = None
        self._web: list[Child] = []
        self._coordinators: list[Child] = []
        self._workers: list[Child] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Of the API and the console, as seen from this machine."""
        host, port = self._socket_name()
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{shown}:{port}"

    @property
    def credentials(self) -> Credentials:
        """The administrator's password if it is ours to know, and the token of the local workers."""
        if self._credentials is None:
            raise LauncherError("The platform has not been started.")
        return self._credentials

    @property
    def children(self) -> Mapping[str, Child]:
        """By name: web, coordinator, worker-1, ..."""
        return {child.name: child for child in (*self._web, *self._coordinators, *self._workers)}

    def start(self) -> None:
        """Bring everything up. Raises LauncherError, PortTaken or EmbeddedError; then call ``stop``."""
        wanted = DEFAULT_PORT if self.options.port is None else self.options.port
        self._socket = ports.listen(self.options.host, wanted, exactly=self.options.port is not None)
        _, port = self._socket_name()
        if wanted and port != wanted:
            self._announce(f"Port {wanted} is taken; using {port}.")
        self._start_database()
        self._credentials = first_start.prepare(self._workload.data_dir)
        self._supervisor = Supervisor()
        self._web = [self._run(self._web_command(self._socket.fileno()))]
        self._coordinators = [self._run(self._coordinator_command())]
        self._wait_until_ready()
        self._workers = [
            self._run(self._worker_command(number)) for number in range(1, self.options.workers + 1)
        ]

    def stop(self) -> None:
        """Stop in order: workers finish or give back their work, then coordinator, web, database."""
        if self._supervisor is not None:
            for group in (self._workers, self._coordinators, self._web):
                self._supervisor.stop(group)
            self._supervisor.stop(self._supervisor.children)  # started, but interrupted before we noted it
            self._supervisor.close()
            self._supervisor = None
        if self._socket is not None:
            self._socket.close()
        if self._server is not None:
            self._server.release()
            self._server = None

    def abort(self) -> None:
        """Make a running ``stop`` wait for nobody. Safe in a signal handler."""
        if self._supervisor is not None:
            self._supervisor.abort()

    def _socket_name(self) -> tuple[str, int]:
        if self._socket is None:
            raise LauncherError("The platform has not been started.")
        host, port = self._socket.getsockname()[:2]
        return host, port

    def _start_database(self) -> None:
        if not self._workload.embedded_database:
            return
        layout = locate(self._workload.data_dir)
        if layout.moved:
            self._announce(
                f"The database's user cannot enter {self._workload.data_dir}; its data lies in {layout.home}."
            )
        self._server = EmbeddedServer(layout)
        self._server.acquire()

    def _run(self, command: Command) -> Child:
        if self._supervisor is None:
            raise LauncherError("The platform has not been started.")
        child = Child(command, self._output)
        self._supervisor.add(child)
        return child

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if any(child.starts > 3 for child in self._web):
                raise LauncherError("The web process does not stay up; its last lines above say why.")
            try:
                answer = requests.get(f"{self.address}/health/ready", timeout=2, allow_redirects=False)
            except requests.RequestException:
                time.sleep(0.05)  # between two starts of the web process the connection may be cut
                continue
            if answer.status_code == requests.codes.ok:
                return
            time.sleep(0.1)
        raise LauncherError(f"The platform was not ready within {READY_SECONDS:.0f} s; see the lines above.")

    def _web_command(self, descriptor: int) -> Command:
        gunicorn = [sys.executable, "-m", "gunicorn", "-c", "python:platform_site.gunicorn_conf"]
        host, port = self._socket_name()
        bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Command(
            name="web",
            arguments=[*gunicorn, "--bind", f"fd://{descriptor}"],
            environment=self._environment("web", WORKLOAD_BIND=bind),
            descriptors=[descriptor, *self._database_share()],
            grace_seconds=35,
        )

    def _coordinator_command(self) -> Command:
        return Command(
            name="coordinator",
            arguments=self._manage("coordinator"),
            environment=self._environment("coordinator"),
            descriptors=self._database_share(),
            grace_seconds=15,
        )

    def _worker_command(self, number: int) -> Command:
        return Command(
            name=f"worker-{number}",
            arguments=self._manage("worker"),
            environment=self._environment(
                "worker",
                WORKLOAD_SERVER_URL=self.address,
                WORKLOAD_ENROLMENT_TOKEN=self.credentials.enrolment_token,
                WORKLOAD_WORKER_NAME=f"worker-{number}",
                WORKLOAD_WORKER_KINDS=",".join(self.options.worker_kinds),
                WORKLOAD_WORKER_CONCURRENCY=str(self.options.worker_concurrency),
            ),
            grace_seconds=40,
        )

    def _manage(self, command: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), command]

    def _database_share(self) -> list[int]:
        return [self._server.users_descriptor] if self._server is not None else []

    def _environment(self, kind: str, **further: str) -> dict[str, str]:
        """Ours, with the database's address in place of the server that only we may start."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
        environment["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
        environment["WORKLOAD_PROCESS_KIND"] = kind
        environment["WORKLOAD_DATA_DIR"] = str(self._workload.data_dir)
        if self._server is not None:
            environment["DATABASE_URL"] = self._server.layout.url
            if not {"WORKLOAD_SECRET_KEY", "WORKLOAD_SECRET_KEY_FILE"}.intersection(environment):
                environment["WORKLOAD_SECRET_KEY_FILE"] = str(self._workload.data_dir / SECRET_KEY_FILE)
        return {**environment, **further, **self.options.environment}
