from __future__ import annotations

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """An app for the sake of its management command alone: it has no tables and imports no model."""

    name = "workers"
    default_auto_field = "django.db.models.BigAutoField"
