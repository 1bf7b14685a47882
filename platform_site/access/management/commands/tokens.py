"""`manage.py tokens create|list|rotate|revoke`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from platform_site.access.models import ApiToken, Tenant
from platform_site.access.operations.create_token import IssuedToken, create_token
from platform_site.access.operations.revoke_token import revoke_token
from platform_site.access.operations.rotate_token import TokenNotLive, rotate_token
from platform_site.access.queries import list_tokens
from platform_site.access.roles import Role
from platform_site.access.tenants import DEFAULT_SLUG, default_tenant


def _days(text: str) -> timedelta:
    try:
        days = float(text)
    except ValueError:
        days = 0
    if not 0 < days <= 36_500:
        raise argparse.ArgumentTypeError("must be a number of days, over 0 and at most 36500")
    return timedelta(days=days)


def _minutes(text: str) -> timedelta:
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1
    if not 0 <= minutes <= 525_600:
        raise argparse.ArgumentTypeError("must be a number of minutes, 0 to 525600")
    return timedelta(minutes=minutes)


class Command(BaseCommand):
    help = "Makes, lists, rotates and revokes API tokens. A secret is printed once, when it is made."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|rotate|revoke")
        create = verbs.add_parser("create", help="make a token and print its secret")
        create.add_argument("name", help="who or what will use it")
        create.add_argument("--role", required=True, choices=[role.value for role in Role])
        create.add_argument("--tenant", default=DEFAULT_SLUG, metavar="SLUG")
        create.add_argument("--expires-in-days", type=_days, metavar="DAYS")
        create.add_argument("--quiet", action="store_true", help="print the secret alone")
        listing = verbs.add_parser("list", help="show tokens, never their secrets")
        listing.add_argument("--tenant", default=None, metavar="SLUG")
        rotate = verbs.add_parser("rotate", help="give an account a new secret")
        rotate.add_argument("prefix")
        rotate.add_argument("--overlap-minutes", type=_minutes, default=timedelta(0), metavar="MINUTES")
        rotate.add_argument("--quiet", action="store_true", help="print the secret alone")
        revoke = verbs.add_parser("revoke", help="end a token at once")
        revoke.add_argument("prefix")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 the signature is Django's
        {"create": self.create, "list": self.list, "rotate": self.rotate, "revoke": self.revoke}[
            options["verb"]
        ](options)

    def create(self, options: dict[str, Any]) -> None:
        slug = options["tenant"]
        tenant = default_tenant() if slug == DEFAULT_SLUG else Tenant.objects.filter(slug=slug).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {slug!r}.")
        ends = datetime.now(UTC) + options["expires_in_days"] if options["expires_in_days"] else None
        try:
            token = create_token(
                tenant=tenant, name=options["name"], role=Role(options["role"]), expires_at=ends
            )
        except ValueError as refused:
            raise CommandError(str(refused)) from refused
        self._show(token, quiet=options["quiet"])

    def list(self, options: dict[str, Any]) -> None:
        for token in list_tokens(tenant_slug=options["tenant"]):
            used = f"{token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never"
            ends = f"{token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else "never"
            self.stdout.write(
                f"{token.prefix}  {token.state:7}  {token.role:16}  {token.tenant_slug}  {token.name}"
                f"  (expires {ends}, last used {used})"
            )

    def rotate(self, options: dict[str, Any]) -> None:
        try:
            token = rotate_token(prefix=options["prefix"], overlap=options["overlap_minutes"])
        except (ApiToken.DoesNotExist, TokenNotLive) as refused:
            raise CommandError(str(refused)) from refused
        self._show(token, quiet=options["quiet"])

    def revoke(self, options: dict[str, Any]) -> None:
        try:
            ended = revoke_token(prefix=options["prefix"])
        except ApiToken.DoesNotExist as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write("Revoked." if ended else "It was revoked before.")

    def _show(self, token: IssuedToken, *, quiet: bool) -> None:
        if quiet:
            self.stdout.write(token.plain)
            return
        self.stdout.write(f"Token {token.prefix} ({token.name}, {token.role}, tenant {token.tenant_slug}).")
        self.stdout.write("This is the only time its secret is shown:")
        self.stdout.write(token.plain)
