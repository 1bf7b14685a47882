"""Reads of access: what the command, the authentication and the admin need to know about tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import BooleanField, Case, Q, Value, When
from django.db.models.functions import Now

from platform_site.access.models import ApiToken

# A busy token would otherwise cost a write per request.
LAST_USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LiveToken:
    """A token that works now. `stale` says that its last use was noted over a minute ago."""

    id: UUID
    account: UUID
    name: str
    role: str
    tenant_id: int
    tenant_slug: str
    stale: bool


@dataclass(frozen=True, slots=True)
class TokenSummary:
    """What anyone may know about a token; `state` is live, expired or revoked."""

    prefix: str
    name: str
    role: str
    tenant_slug: str
    state: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


def _unnoted() -> Q:
    return Q(last_used_at=None) | Q(last_used_at__lt=Now() - LAST_USED_EVERY)


def find_live_token(*, digest: bytes) -> LiveToken | None:
    """The unrevoked, unexpired token with this digest, by the database's clock; one statement."""
    row = (
        ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), digest=digest, revoked_at=None)
        .annotate(
            stale=Case(When(_unnoted(), then=Value(True)), default=Value(False), output_field=BooleanField())
        )
        .values_list("id", "account", "name", "role", "tenant_id", "tenant__slug", "stale")
        .first()
    )
    return LiveToken(*row) if row else None


def note_use(*, token_id: UUID) -> None:
    """Note that the token was used; the guard in the UPDATE makes that one write a minute, whoever races."""
    ApiToken.objects.filter(_unnoted(), pk=token_id).update(last_used_at=Now())


def list_tokens(*, tenant_slug: str | None = None) -> list[TokenSummary]:
    """All tokens, newest first; of one tenant if named."""
    tokens = ApiToken.objects.annotate(
        state=Case(
            When(revoked_at__isnull=False, then=Value("revoked")),
            When(expires_at__lte=Now(), then=Value("expired")),
            default=Value("live"),
        )
    )
    if tenant_slug is not None:
        tokens = tokens.filter(tenant__slug=tenant_slug)
    rows = tokens.order_by("-created_at", "-id").values_list(
        "prefix", "name", "role", "tenant__slug", "state", "created_at", "expires_at", "last_used_at"
    )
    return [TokenSummary(*row) for row in rows]
