from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Template tags and static files of the console; no models."""

    name = "platform_site.console"
    label = "console"
    verbose_name = "Console"
