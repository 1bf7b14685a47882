"""Tell systemd that the service is up, alive, or stopping: one datagram to the socket that it named.

The protocol is ``sd_notify(3)``. Outside systemd (no ``NOTIFY_SOCKET``) every call does nothing.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Self

logger = logging.getLogger(__name__)


class SystemdNotifier:
    """``address`` is a path, or begins with @ for an abstract socket; None is silent."""

    def __init__(self, address: str | None, *, watchdog: bool = False) -> None:
        self._address = "\0" + address[1:] if address and address.startswith("@") else address
        self._watchdog = watchdog

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """As systemd set it for this process; a watchdog meant for another process id is not ours."""
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        return cls(environment.get("NOTIFY_SOCKET"), watchdog=watched and "WATCHDOG_USEC" in environment)

    def ready(self) -> None:
        """The service works."""
        self._send("READY=1")

    def alive(self) -> None:
        """The loop turns; sent only where a watchdog listens."""
        if self._watchdog:
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The service ends by its own will."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as datagrams:
                datagrams.sendto(state.encode(), self._address)
        except OSError as error:
            # The manager's socket decides nothing about the work; systemd acts on the silence by itself.
            logger.warning("systemd could not be told %s: %s", state, error)
