"""The side navigation: sections in the order a day asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NavItem:
    """A link of the navigation. `section` is what a page names to be shown as the current one."""

    section: str
    label: str
    url_name: str


@dataclass(frozen=True, slots=True)
class NavGroup:
    label: str
    items: Sequence[NavItem]


NAVIGATION: tuple[NavGroup, ...] = (
    NavGroup(
        "",
        (
            NavItem("overview", "Overview", "overview"),
            NavItem("runs", "Runs", "runs"),
            NavItem("workflows", "Workflows", "workflows"),
        ),
    ),
    NavGroup(
        "Operate",
        (
            NavItem("workers", "Workers", "workers"),
            NavItem("records", "Records", "admin:index"),
        ),
    ),
)
