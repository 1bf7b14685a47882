"""The form of an API token: `wl_<prefix>_<secret>`. Pure.

The prefix is public: it names the token in lists and logs, and lets scanners find leaked tokens. The secret
is 256 random bits. What is stored is the SHA-256 digest of the whole text; so many random bits need no slow
hash, and an equality lookup on the digest tells a guesser nothing about the secret.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

MARK = "wl"
MAX_TOKEN_CHARS = 128


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A fresh token: `plain` is shown once and kept nowhere."""

    prefix: str
    plain: str = field(repr=False)
    digest: bytes = field(repr=False)


def new_secret() -> NewSecret:
    prefix = secrets.token_hex(5)
    plain = f"{MARK}_{prefix}_{secrets.token_urlsafe(32)}"
    return NewSecret(prefix=prefix, plain=plain, digest=digest_of(plain))


def digest_of(plain: str) -> bytes:
    return hashlib.sha256(plain.encode()).digest()


def looks_like_token(text: str) -> bool:
    """Whether it is worth asking the database: bounded, ASCII, with our mark."""
    return len(text) <= MAX_TOKEN_CHARS and text.isascii() and text.startswith(f"{MARK}_")
