"""Begin a worker session. Every start of a process is a new one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from dispatch.errors import WorkerProtocolUnsupported
from dispatch.lease import token_digest
from dispatch.statements import sql
from platform_site import wake

PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class Registered:
    """The new session. The token is shown this once; only its digest is stored."""

    worker_id: UUID
    session_token: str


def register(
    *,
    display_name: str,
    protocol_version: int,
    executor_kinds: Sequence[str],
    max_concurrency: int,
    labels: Mapping[str, str],
    drills: bool,
    tenant_id: int | None,
) -> Registered:
    """Make an active worker and wake the coordinator: it may accept what nobody did.

    ``tenant_id`` None serves every tenant. Raises WorkerProtocolUnsupported. Takes no lock.
    """
    if protocol_version != PROTOCOL_VERSION:
        raise WorkerProtocolUnsupported
    worker_id, token = uuid7(), secrets.token_urlsafe(32)
    with transaction.atomic(durable=True):
        sql.run(
            "insert_worker",
            id=worker_id,
            display_name=display_name,
            protocol_version=protocol_version,
            executor_kinds=sorted(set(executor_kinds)),
            tenant_id=tenant_id,
            labels=Jsonb(dict(labels)),
            max_concurrency=max_concurrency,
            drills=drills,
            session_digest=token_digest(token),
        )
    wake.coordinator()
    return Registered(worker_id=worker_id, session_token=token)
