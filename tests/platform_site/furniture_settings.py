"""The site's settings with the small site of these tests at its addresses."""

from __future__ import annotations

from tests.settings import *  # noqa: F403 a settings module is what it re-exports

ROOT_URLCONF = "tests.platform_site.furniture"
