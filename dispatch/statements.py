"""The app's statements, loaded once."""

from __future__ import annotations

from platform_site.statements import Statements

sql = Statements("dispatch.sql")
