"""The listening socket of the one-machine platform.

It is bound here and handed to the web process, so that no other program can take the port in between, and
requests wait in it while the web process is started again.
"""

from __future__ import annotations

import errno
import socket

NEIGHBOURS = 20
"""How many ports above the wanted one are tried before any free one is taken."""


class PortTaken(Exception):
    """The port that was asked for by name cannot be had."""


def listen(host: str, port: int, *, exactly: bool) -> socket.socket:
    """A listening socket on that port, or, unless ``exactly``, on a free one near it.

    Raises PortTaken: the port, or the address, cannot be had.
    """
    candidates = [port] if exactly or port == 0 else [*range(port, min(port + NEIGHBOURS, 65536)), 0]
    for candidate in candidates:
        try:
            return _bound(host, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and not exactly:
                continue
            raise PortTaken(_explain(host, candidate, error)) from error
    raise PortTaken(f"No port is free on {host}.")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
    except OSError:
        made.close()
        raise
    return made


def _explain(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is taken by another program. Stop it, choose another with --port, "
            "or leave --port out: a free one is then found."
        )
    return f"Cannot listen on {host}, port {port}: {error.strerror or error}."
