"""What can go wrong with the embedded server.

EmbeddedError
├── BinariesMissing     no PostgreSQL programs on this machine
├── UserUnknown         the process runs under a user id that has no name
├── VersionMismatch     the data was made by another major version
└── StartFailed         the server would not start, or would not stop
"""

from __future__ import annotations


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot be used; the message says what to do."""


class BinariesMissing(EmbeddedError):
    """No PostgreSQL programs were found."""


class UserUnknown(EmbeddedError):
    """PostgreSQL refuses a user id without a name."""


class VersionMismatch(EmbeddedError):
    """The data folder belongs to another major version; nothing was touched."""


class StartFailed(EmbeddedError):
    """The server did not start or stop in time; its log says why."""
