"""What every page gets: the theme and the navigation. Reads no database."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from platform_site.console.navigation import NAVIGATION
from platform_site.console.views import THEMES, theme_of


def furniture(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `theme`, `next_theme` (the one its button changes to) and `navigation`."""
    theme = theme_of(request)
    following = THEMES[(THEMES.index(theme) + 1) % len(THEMES)]
    return {"theme": theme, "next_theme": following, "navigation": NAVIGATION}
