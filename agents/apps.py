from __future__ import annotations

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Drafts, the agent runtime, approvals."""

    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"
