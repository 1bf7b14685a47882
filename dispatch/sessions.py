"""Who a worker's session token belongs to.

What a session registered with never changes, so it is cached per process. Whether the session still lives is
not known here: every operation asks that under its locks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from cachetools import LRUCache

from dispatch.compatibility import Acceptor, ClassFacts, accepted_ids
from dispatch.lease import token_digest
from dispatch.models import Worker
from dispatch.statements import sql

CACHED_SESSIONS = 10_000


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The immutable part of a worker session."""

    id: UUID
    display_name: str
    kinds: frozenset[str]
    tenant_id: int | None
    labels: Mapping[str, str]
    max_concurrency: int

    @property
    def acceptor(self) -> Acceptor:
        return Acceptor(kinds=self.kinds, tenant_id=self.tenant_id, labels=self.labels)


_cache: LRUCache[bytes, WorkerIdentity] = LRUCache(maxsize=CACHED_SESSIONS)
_lock = Lock()


def find_session(session_token: str) -> WorkerIdentity | None:
    """The worker that this token was issued to, alive or not; None if there is none."""
    digest = token_digest(session_token)
    with _lock:
        found = _cache.get(digest)
    if found is not None:
        return found
    worker = Worker.objects.filter(session_digest=digest).first()
    if worker is None:
        return None
    identity = WorkerIdentity(
        id=worker.id,
        display_name=worker.display_name,
        kinds=frozenset(worker.executor_kinds),
        tenant_id=worker.tenant_id,
        labels=dict(worker.labels),
        max_concurrency=worker.max_concurrency,
    )
    with _lock:
        _cache[digest] = identity
    return identity


@dataclass(frozen=True, slots=True)
class KnownClasses:
    """The task classes that a worker accepts, as of a ``version`` of all classes: their number and highest id."""

    version: tuple[int, int | None]
    ids: list[int]


_NOTHING_KNOWN = KnownClasses((0, None), [])
_classes: LRUCache[UUID, KnownClasses] = LRUCache(maxsize=CACHED_SESSIONS)


def known_classes(worker: WorkerIdentity) -> KnownClasses:
    """What this process last learned; compare its version before relying on it."""
    with _lock:
        return _classes.get(worker.id, _NOTHING_KNOWN)


def learn_classes(worker: WorkerIdentity, version: tuple[int, int | None]) -> KnownClasses:
    """Read the classes again, because there are new ones."""
    rows = sql.rows("read_classes", kinds=sorted(worker.kinds), tenant_id=worker.tenant_id)
    known = KnownClasses(version, accepted_ids(worker.acceptor, (ClassFacts.from_row(*row) for row in rows)))
    with _lock:
        _classes[worker.id] = known
    return known
