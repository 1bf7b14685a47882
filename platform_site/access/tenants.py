"""The default tenant: made by the first migration, and again by whoever needs it."""

from __future__ import annotations

from platform_site.access.models import Tenant

DEFAULT_SLUG = "default"


def default_tenant() -> Tenant:
    """The tenant named `default`; made anew if it is gone, also when another process does so at once."""
    found = Tenant.objects.filter(slug=DEFAULT_SLUG).first()
    if found is not None:
        return found
    Tenant.objects.bulk_create([Tenant(slug=DEFAULT_SLUG, name="Default")], ignore_conflicts=True)
    return Tenant.objects.get(slug=DEFAULT_SLUG)
