"""The furniture of the console: signing in, the theme, error pages, and markup a strict policy allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from platform_site.access.principal import Principal
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant
from platform_site.console import views
from platform_site.console.navigation import NAVIGATION
from platform_site.console.views import ConsoleView

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = ROOT / "platform_site" / "console" / "static" / "console"

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_user("operator-1", password="a good one", is_staff=True))
    return client


def test_a_visitor_is_sent_to_sign_in_and_comes_back(client: Client) -> None:
    User.objects.create_user("operator-1", password="a good one", is_staff=True)
    answer = client.get("/workers")
    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/workers")
    answer = client.post("/login", {"username": "operator-1", "password": "a good one", "next": "/workers"})
    assert (answer.status_code, answer["Location"]) == (302, "/workers")


def test_a_wrong_password_is_said_and_signs_nobody_in(client: Client) -> None:
    User.objects.create_user("operator-1", password="a good one", is_staff=True)
    answer = client.post("/login", {"username": "operator-1", "password": "another"})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()
    assert "_auth_user_id" not in client.session


def test_signing_in_never_leads_to_another_site(client: Client) -> None:
    User.objects.create_user("operator-1", password="a good one", is_staff=True)
    answer = client.post(
        "/login", {"username": "operator-1", "password": "a good one", "next": "https://elsewhere.example/"}
    )
    assert answer["Location"] == "/"


def test_a_person_who_may_act_for_no_tenant_is_told_so(client: Client) -> None:
    client.force_login(User.objects.create_user("visitor"))
    answer = client.get("/")
    assert answer.status_code == 403
    assert "This is not allowed" in answer.content.decode()
    assert "Sign out" in answer.content.decode()


def test_a_page_may_need_more_than_looking(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = Principal("user:1", "user", default_tenant().id, "default", Role.VIEWER, "viewer")
    monkeypatch.setattr(views, "principal_of_user", lambda _: viewer)
    client.force_login(User.objects.create_user("viewer"))
    monkeypatch.setattr(ConsoleView, "needed_role", Role.OPERATOR)
    assert client.get("/workers").status_code == 403
    monkeypatch.setattr(ConsoleView, "needed_role", Role.VIEWER)
    assert client.get("/workers").status_code == 200


def test_a_live_part_without_a_session_reloads_its_page(client: Client) -> None:
    answer = client.get("/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (204, "true")


def test_a_live_part_gets_the_partial_the_page_includes(staff: Client) -> None:
    page = staff.get("/workers")
    part = staff.get("/workers", headers={"HX-Request": "true"})
    assert {template.name for template in part.templates} < {template.name for template in page.templates}
    assert "<html" not in part.content.decode()
    assert "HX-Request" in page["Vary"]
    assert page["Cache-Control"] == "no-store"


def test_signing_out_takes_a_post(staff: Client) -> None:
    assert staff.get("/logout").status_code == 405
    assert staff.post("/logout")["Location"] == "/login"
    assert staff.get("/").status_code == 302


@pytest.mark.parametrize(("chosen", "shown"), [("dark", "dark"), ("light", "light"), ("neon", "system")])
def test_the_theme_is_remembered_if_it_exists(staff: Client, chosen: str, shown: str) -> None:
    answer = staff.post("/theme", {"theme": chosen, "next": "/workers"})
    assert answer["Location"] == "/workers"
    assert f'data-theme="{shown}"' in staff.get("/workers").content.decode()


def test_choosing_a_theme_never_leads_to_another_site(staff: Client) -> None:
    assert staff.post("/theme", {"theme": "dark", "next": "//elsewhere.example"})["Location"] == "/"


def test_the_navigation_marks_where_one_is(staff: Client) -> None:
    markup = staff.get("/workers").content.decode()
    assert re.findall(r'aria-current="page"[^>]*>([^<]+)<', markup) == ["Workers"]
    for group in NAVIGATION:
        for item in group.items:
            assert f'href="{reverse(item.url_name)}"' in markup


def test_an_unknown_address_is_a_page(staff: Client) -> None:
    answer = staff.get("/nowhere")
    assert answer.status_code == 404
    assert "Nothing here" in answer.content.decode()


@pytest.mark.parametrize("status", ["400", "403", "403_csrf", "404", "500"])
def test_error_pages_need_nothing_but_themselves(status: str, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]  # pytest-django's fixture
        markup = render_to_string(f"{status}.html")
    assert 'href="/"' in markup


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_no_template_needs_an_exception_from_a_strict_policy(template: Path) -> None:
    """Nothing inline that runs or styles, and nothing from another host."""
    markup = template.read_text()
    assert not re.search(r"\sstyle\s*=", markup)
    assert not re.search(r"\son[a-z]+\s*=", markup)
    assert not re.search(r"hx-on|hx-vals=.js:|javascript:", markup)
    assert not re.search(r"<style|<script(?![^>]*\ssrc=)", markup)
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", markup)


@pytest.mark.parametrize("name", ["tokens.css", "app.css", "admin.css"])
def test_a_stylesheet_stands_alone(name: str) -> None:
    sheet = (STATIC / name).read_text()
    assert not re.search(r"https?://|@import", sheet)
    for file in re.findall(r'url\("([^"]+)"\)', sheet):
        assert (STATIC / file).is_file()


@pytest.mark.parametrize("name", ["app.css", "admin.css"])
def test_colours_come_from_the_tokens(name: str) -> None:
    tokens = set(re.findall(r"(--[a-z-]+):", (STATIC / "tokens.css").read_text()))
    sheet = (STATIC / name).read_text()
    own = set(re.findall(r"(--[a-z-]+):", sheet))
    assert set(re.findall(r"var\((--[a-z-]+)\)", sheet)) <= tokens | own
    assert not re.search(r"#[0-9a-f]{3,8}\b", re.sub(r"#[a-z][a-z-]*(?=[ ,{.:>\[])", "", sheet))


def test_the_dark_tokens_are_the_same_chosen_and_followed() -> None:
    sheet = (STATIC / "tokens.css").read_text()
    chosen = re.search(r'\[data-theme="dark"\] \{(.*?)\}', sheet, re.DOTALL)
    followed = re.search(r"@media.*?\{.*?\{(.*?)\}", sheet, re.DOTALL)
    assert chosen is not None
    assert followed is not None
    assert chosen.group(1).split() == followed.group(1).split()


def test_what_is_vendored_brings_its_licence() -> None:
    assert "SIL OPEN FONT LICENSE" in (STATIC / "fonts" / "inter-LICENSE.txt").read_text()
    assert "SIL OPEN FONT LICENSE" in (STATIC / "fonts" / "jetbrains-mono-LICENSE.txt").read_text()
    assert "BSD" in (STATIC / "vendor" / "htmx-LICENSE.txt").read_text()
