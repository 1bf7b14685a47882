from __future__ import annotations

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "platform_site.access"
    label = "access"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"
