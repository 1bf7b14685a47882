"""Credentials of people and programs. Sessions of workers are the business of `dispatch`.

Order matters: the first class of a view names the challenge of a 401, so bearer tokens come first.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from platform_site.access import queries
from platform_site.access.principal import Principal
from platform_site.access.roles import Role
from platform_site.access.secrets import digest_of, looks_like_token
from platform_site.access.tenants import default_tenant

CHALLENGE = 'Bearer realm="workload"'


def bearer_value(request: Request) -> str | None:
    """The value of `Authorization: Bearer ...`; None without the header or with another scheme.

    Raises AuthenticationFailed if the header names the scheme and is malformed.
    """
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    value = value.strip()
    if not value or " " in value:
        raise AuthenticationFailed("The Authorization header must be: Bearer <token>.")
    return value


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer wl_...`; `request.auth` is the token's id."""

    def authenticate(self, request: Request) -> tuple[Principal, object] | None:
        value = bearer_value(request)
        if value is None:
            return None
        token = queries.find_live_token(digest=digest_of(value)) if looks_like_token(value) else None
        if token is None:
            raise AuthenticationFailed("The token is unknown, has expired or was revoked.")
        if token.stale:
            queries.note_use(token_id=token.id)
        principal = Principal(
            id=str(token.account),
            kind="token",
            tenant_id=token.tenant_id,
            tenant_slug=token.tenant_slug,
            role=token.role,
            name=token.name,
        )
        return principal, token.id

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 the signature is the framework's
        return CHALLENGE


class UserAuthentication(SessionAuthentication):
    """People signed in with Django: staff act as admins of the default tenant; others as nobody.

    Writes need the CSRF token, as the session cookie travels by itself.
    """

    def authenticate(self, request: Request) -> tuple[Principal, object] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        principal = principal_of_user(found[0])
        return (principal, None) if principal is not None else None

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 the signature is the framework's
        return CHALLENGE


def principal_of_user(user: AbstractBaseUser | AnonymousUser) -> Principal | None:
    """What a signed-in person may act as; None for whoever is not staff. Console pages use this too."""
    if not user.is_active or not (getattr(user, "is_staff", False) or getattr(user, "is_superuser", False)):
        return None
    tenant = default_tenant()
    return Principal(
        id=f"user:{user.pk}",
        kind="user",
        tenant_id=tenant.id,
        tenant_slug=tenant.slug,
        role=Role.ADMIN,
        name=str(user),
    )
