from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from platform_site.access.models import ApiToken, Tenant
from platform_site.access.roles import Role
from platform_site.access.secrets import NewSecret, new_secret


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token just made. `plain` is the only copy of the secret there will ever be."""

    id: UUID
    prefix: str
    name: str
    role: str
    tenant_slug: str
    expires_at: datetime | None
    plain: str = field(repr=False)


def create_token(*, tenant: Tenant, name: str, role: Role, expires_at: datetime | None = None) -> IssuedToken:
    """Make a token of `tenant` with `role`; without `expires_at` it lives until it is revoked.

    Raises ValueError for a blank or over-long name.
    """
    name = name.strip()
    if not 1 <= len(name) <= 128:
        raise ValueError("A token needs a name of 1 to 128 characters.")
    secret = new_secret()
    token = ApiToken.objects.create(
        tenant=tenant,
        name=name,
        role=role.value,
        prefix=secret.prefix,
        digest=secret.digest,
        expires_at=expires_at,
    )
    return issued(token, secret)


def issued(token: ApiToken, secret: NewSecret) -> IssuedToken:
    """What the maker of a token is told, once."""
    return IssuedToken(
        id=token.id,
        prefix=token.prefix,
        name=token.name,
        role=token.role,
        tenant_slug=token.tenant.slug,
        expires_at=token.expires_at,
        plain=secret.plain,
    )
