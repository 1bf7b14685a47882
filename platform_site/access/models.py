"""Schema of access: each constraint and index says what it is for."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Func, IntegerField, Q
from django.db.models.functions import Now
from django.db.models.lookups import Exact
from uuid_utils.compat import uuid7

from platform_site.access.roles import Role


def _octets(field: str) -> Func:
    return Func(F(field), function="OCTET_LENGTH", output_field=IntegerField())


class Tenant(models.Model):
    """Owner of workflows, runs and tokens, with its quotas and its place in the turn order."""

    id = models.AutoField(primary_key=True)
    slug = models.CharField(max_length=63, unique=True)
    name = models.CharField(max_length=128)
    max_running = models.PositiveIntegerField(
        null=True, blank=True, help_text="Running tasks; empty is no limit."
    )
    max_queued = models.PositiveIntegerField(
        null=True, blank=True, help_text="Queued tasks; empty is no limit."
    )
    turn_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Smallest is served first; moved on by the coordinator."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["slug"]
        constraints = [
            # Slugs travel in addresses, log fields and metric labels.
            models.CheckConstraint(
                name="tenant_slug_plain", condition=Q(slug__regex=r"^[a-z0-9][a-z0-9-]{0,62}$")
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class ApiToken(models.Model):
    """A secret bound to a tenant and a role. The secret itself is nowhere; its SHA-256 digest is.

    `account` is the identity behind the token: a rotation issues a new token with the same account, so that
    whatever is scoped to a principal (idempotency keys) survives it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.UUIDField(default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=128)
    role = models.CharField(max_length=32, choices=[(role.value, role.value) for role in Role])
    prefix = models.CharField(max_length=16, unique=True, help_text="The visible part of the token.")
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Written at most once a minute."
    )

    class Meta:
        ordering = ["-created_at"]
        verbose_name = "API token"
        constraints = [
            models.CheckConstraint(
                name="api_token_role_known", condition=Q(role__in=[role.value for role in Role])
            ),
            # Anything but a SHA-256 digest here would be a secret, or a token that can never match.
            models.CheckConstraint(name="api_token_digest_sha256", condition=Exact(_octets("digest"), 32)),
            models.CheckConstraint(name="api_token_name_given", condition=~Q(name="")),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class IdempotencyRecord(models.Model):
    """What a creating request with an Idempotency-Key answered, so that its repeat answers the same.

    Written by `platform_site.api.idempotency` in the operation's own transaction. `facts` is null only
    inside that transaction. The record counts as long as the row exists: pruning is what ends it, after
    `expires_at` and never before the resource it names has ended.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    principal_id = models.CharField(max_length=128)
    operation = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    digest = models.BinaryField(max_length=32)
    facts = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            # The conflict target of the first statement of every keyed operation.
            models.UniqueConstraint(
                name="idempotency_scope_unique", fields=["tenant", "principal_id", "operation", "key"]
            ),
            models.CheckConstraint(name="idempotency_digest_sha256", condition=Exact(_octets("digest"), 32)),
        ]
        indexes = [
            # The sweep: records past their time, oldest first.
            models.Index(name="idempotency_expiry", fields=["expires_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"
