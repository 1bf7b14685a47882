from __future__ import annotations

from django.db.models.functions import Now

from platform_site.access.models import ApiToken


def revoke_token(*, prefix: str) -> bool:
    """End a token at once; True if this call ended it, False if it was revoked before.

    Raises ApiToken.DoesNotExist if there is no token with this prefix.
    """
    ended = ApiToken.objects.filter(prefix=prefix, revoked_at=None).update(revoked_at=Now())
    if not ended and not ApiToken.objects.filter(prefix=prefix).exists():
        raise ApiToken.DoesNotExist(f"There is no token with the prefix {prefix}.")
    return bool(ended)
