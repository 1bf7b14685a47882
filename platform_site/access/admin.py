"""Tenants and tokens in the admin. No form ever shows or takes a secret; `manage.py tokens` makes tokens."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from platform_site.access.models import ApiToken, Tenant
from platform_site.access.operations.revoke_token import revoke_token


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin[Tenant]):
    list_display = ["slug", "name", "max_running", "max_queued", "created_at"]
    search_fields = ["slug", "name"]
    readonly_fields = ["turn_at", "created_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> list[str]:  # noqa: ARG002
        # A slug is part of addresses, logs and metrics: once given, it stays.
        return [*self.readonly_fields, "slug"] if obj else [*self.readonly_fields]

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:  # noqa: ARG002
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    list_display = [
        "prefix",
        "name",
        "role",
        "tenant",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    ]
    list_filter = ["role", "tenant"]
    list_select_related = ["tenant"]
    search_fields = ["name", "prefix"]
    date_hierarchy = "created_at"
    actions = ["revoke"]
    fields = readonly_fields = (
        "prefix",
        "name",
        "role",
        "tenant",
        "account",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 the signature is Django's
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:  # noqa: ARG002
        return False

    @admin.action(description="Revoke at once", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        ended = sum(revoke_token(prefix=prefix) for prefix in tokens.values_list("prefix", flat=True))
        left = tokens.count() - ended
        self.message_user(request, f"Revoked {ended}; {left} were revoked before.", messages.SUCCESS)
