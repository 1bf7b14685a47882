from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from platform_site.access.models import ApiToken
from platform_site.access.operations.create_token import IssuedToken, issued
from platform_site.access.secrets import new_secret


class TokenNotLive(Exception):
    """A revoked or expired token cannot be rotated: make a new one."""


def rotate_token(*, prefix: str, overlap: timedelta = timedelta(0)) -> IssuedToken:
    """Give the account behind a token a new secret; the old one works for `overlap` longer.

    The new token keeps name, role, tenant, account and expiry. Raises ApiToken.DoesNotExist for an unknown
    prefix and TokenNotLive for a token that no longer works. Locks the old token's row.
    """
    with transaction.atomic():
        old = ApiToken.objects.select_for_update(of=("self",)).select_related("tenant").get(prefix=prefix)
        ends = Now() + overlap
        live = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now()))
        if not ApiToken.objects.filter(live, pk=old.pk).exists():
            raise TokenNotLive(f"The token {prefix} is revoked or has expired.")
        secret = new_secret()
        new = ApiToken.objects.create(
            account=old.account,
            tenant=old.tenant,
            name=old.name,
            role=old.role,
            prefix=secret.prefix,
            digest=secret.digest,
            expires_at=old.expires_at,
        )
        # Never later than it would have ended anyway.
        still_longer = Q(expires_at=None) | Q(expires_at__gt=ends)
        ApiToken.objects.filter(still_longer, pk=old.pk).update(expires_at=ends)
    return issued(new, secret)
