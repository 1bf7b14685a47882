"""A creating request repeated with the same key answers the same and creates once.

An operation calls `begin` as the first statement of its own transaction and `finish` before that transaction
ends, with the facts from which its answer can be rendered again:

    with transaction.atomic(durable=True):
        replay = begin(request)
        if replay is not None:
            return started(replay.facts)
        ...
        finish(request, facts={"run_id": str(run.id)})

Equal requests at the same time wait for each other in `begin`, by the unique index alone. A request that
fails rolls its record back with everything else, so that it can be tried again with the same key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from platform_site.access.models import IdempotencyRecord
from platform_site.api.errors import Detail, IdempotencyConflict, InvalidRequest
from platform_site.database import require_transaction
from platform_site.statements import Statements
from workflows.kernel import canonical

HEADER = "Idempotency-Key"
MAX_KEY_CHARS = 255

_sql = Statements("platform_site.api.sql")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """One keyed request. `digest` is the SHA-256 of what was asked: address and parsed body."""

    tenant_id: int
    principal_id: str
    operation: str
    key: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Replay:
    """The request was answered before: the facts its first answer was rendered from."""

    facts: Mapping[str, Any]


def check_key(text: str | None) -> str | None:
    """The Idempotency-Key header: absent, or 1 to 255 visible ASCII characters; else InvalidRequest."""
    if text is None:
        return None
    if 1 <= len(text) <= MAX_KEY_CHARS and all("!" <= char <= "~" for char in text):
        return text
    problem = Detail("$", "invalid_idempotency_key", f"{HEADER} must be 1 to 255 visible ASCII characters.")
    raise InvalidRequest(problem.message, details=[problem])


def request_digest(address: str, document: Any) -> bytes:
    """What makes two requests with one key the same: the path and the body's values, not its spelling."""
    return canonical.digest(canonical.dumps([address, document]))


def begin(request: Idempotency | None) -> Replay | None:
    """Claim the key, or say that it was answered before. Without a key there is nothing to remember.

    Must be the first statement of an open transaction. Raises IdempotencyConflict if the key was used for
    another request.
    """
    require_transaction()
    if request is None:
        return None
    while not _claim(request):
        # A new statement, so a new snapshot: it sees what the insert waited for. The row is missing only
        # if it was pruned between the two, and then the key is free.
        found = _records(request).values_list("digest", "facts").first()
        if found is not None:
            return _replay(request, digest=bytes(found[0]), facts=found[1])
    return None


def finish(request: Idempotency | None, *, facts: Mapping[str, Any]) -> None:
    """Keep what the answer is rendered from; in the transaction that `begin` began."""
    require_transaction()
    if request is not None and _records(request).filter(facts__isnull=True).update(facts=dict(facts)) != 1:
        raise RuntimeError(f"finish() of {request.operation} without the begin() that opened its key.")


def _claim(request: Idempotency) -> bool:
    return bool(
        _sql.rows(
            "open_idempotency_record",
            tenant_id=request.tenant_id,
            principal_id=request.principal_id,
            operation=request.operation,
            key=request.key,
            digest=request.digest,
            days=settings.WORKLOAD.idempotency_days,
        )
    )


def _records(request: Idempotency) -> Any:
    return IdempotencyRecord.objects.filter(
        tenant_id=request.tenant_id,
        principal_id=request.principal_id,
        operation=request.operation,
        key=request.key,
    )


def _replay(request: Idempotency, *, digest: bytes, facts: Mapping[str, Any] | None) -> Replay:
    if digest != request.digest:
        raise IdempotencyConflict
    if facts is None:
        raise RuntimeError(f"{request.operation} committed without finish(), or began one key twice.")
    return Replay(facts=facts)
