"""Credentials over HTTP and from the command: who may do what, until when, and what is noted."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from platform_site.access.models import ApiToken, Tenant
from platform_site.access.operations.create_token import IssuedToken, create_token
from platform_site.access.operations.revoke_token import revoke_token
from platform_site.access.operations.rotate_token import TokenNotLive, rotate_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.urls("tests.platform_site.furniture"), pytest.mark.django_db]


def token(role: Role, name: str = "someone", **kwargs: Any) -> IssuedToken:
    return create_token(tenant=default_tenant(), name=name, role=role, **kwargs)


def call(method: str, path: str, plain: str | None) -> Any:
    headers = {"authorization": f"Bearer {plain}"} if plain is not None else {}
    return Client().generic(method, path, headers=headers)


@pytest.mark.parametrize(
    ("role", "views", "operates", "enrols"),
    [
        (Role.VIEWER, 200, 403, 403),
        (Role.OPERATOR, 200, 200, 403),
        (Role.ADMIN, 200, 200, 403),
        (Role.WORKER_ENROLMENT, 403, 403, 200),
        (None, 401, 401, 401),
    ],
)
def test_who_may_do_what(role: Role | None, views: int, operates: int, enrols: int) -> None:
    plain = token(role).plain if role else None
    assert call("GET", "/api/v1/viewers", plain).status_code == views
    assert call("POST", "/api/v1/viewers", plain).status_code == operates
    assert call("POST", "/api/v1/enrolment", plain).status_code == enrols


def test_a_403_says_which_role_is_needed() -> None:
    error = call("POST", "/api/v1/viewers", token(Role.VIEWER).plain).json()["error"]
    assert error["code"] == "forbidden"
    assert "operator" in error["message"]


def test_an_unknown_method_is_405_for_any_principal() -> None:
    response = call("PUT", "/api/v1/viewers", token(Role.VIEWER).plain)
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert "GET" in response["Allow"]
    assert call("OPTIONS", "/api/v1/viewers", token(Role.VIEWER).plain).status_code == 405
    assert call("HEAD", "/api/v1/viewers", token(Role.VIEWER).plain).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer wl_x_y",
        "Bearer nonsense",
        "Bearer wl_" + "x" * 5_000,
        "Bearer wl_\u00e9",
        "Basic dXNlcjpwYXNz",
        "wl_x_y",
    ],
)
def test_a_credential_that_is_none_is_401_and_not_repeated(header: str) -> None:
    response = Client().get("/api/v1/viewers", headers={"authorization": header})
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert "xxxxx" not in response.content.decode()


def test_a_token_ends_when_it_expires_or_is_revoked() -> None:
    issued = token(Role.VIEWER)
    assert call("GET", "/api/v1/viewers", issued.plain).status_code == 200
    ApiToken.objects.filter(id=issued.id).update(expires_at=Now() - timedelta(seconds=1))
    assert call("GET", "/api/v1/viewers", issued.plain).status_code == 401
    other = token(Role.VIEWER)
    assert revoke_token(prefix=other.prefix) is True
    assert revoke_token(prefix=other.prefix) is False
    assert call("GET", "/api/v1/viewers", other.plain).status_code == 401


def test_the_last_use_is_noted_once_a_minute() -> None:
    issued = token(Role.VIEWER)
    with CaptureQueriesContext(connection) as first:
        call("GET", "/api/v1/viewers", issued.plain)
    with CaptureQueriesContext(connection) as second:
        call("GET", "/api/v1/viewers", issued.plain)
    assert (len(first), len(second)) == (2, 1)
    noted = ApiToken.objects.get(id=issued.id).last_used_at
    assert noted is not None
    ApiToken.objects.filter(id=issued.id).update(last_used_at=noted - timedelta(minutes=2))
    call("GET", "/api/v1/viewers", issued.plain)
    again = ApiToken.objects.get(id=issued.id).last_used_at
    assert again is not None
    assert again >= noted


def test_a_rotation_keeps_the_account_and_overlaps() -> None:
    old = token(Role.OPERATOR, "deployer")
    before = call("GET", "/api/v1/viewers", old.plain).json()
    new = rotate_token(prefix=old.prefix, overlap=timedelta(minutes=5))
    assert call("GET", "/api/v1/viewers", old.plain).status_code == 200
    assert call("GET", "/api/v1/viewers", new.plain).json() == before
    ApiToken.objects.filter(id=old.id).update(expires_at=Now() - timedelta(seconds=1))
    assert call("GET", "/api/v1/viewers", old.plain).status_code == 401


def test_a_rotation_without_overlap_ends_the_old_token_and_never_prolongs_it() -> None:
    old = token(Role.OPERATOR)
    rotate_token(prefix=old.prefix)
    assert call("GET", "/api/v1/viewers", old.plain).status_code == 401
    with pytest.raises(TokenNotLive):
        rotate_token(prefix=old.prefix)
    short = token(Role.OPERATOR)
    ApiToken.objects.filter(id=short.id).update(expires_at=Now() + timedelta(minutes=1))
    ends = ApiToken.objects.get(id=short.id).expires_at
    rotate_token(prefix=short.prefix, overlap=timedelta(days=1))
    assert ApiToken.objects.get(id=short.id).expires_at == ends


@pytest.mark.parametrize(("staff", "status"), [(True, 200), (False, 401)])
def test_people_who_are_staff_act_as_admins_of_the_default_tenant(staff: bool, status: int) -> None:
    client = Client()
    client.force_login(User.objects.create_user("ada", password="x", is_staff=staff))
    response = client.get("/api/v1/viewers")
    assert response.status_code == status
    if staff:
        assert response.json()["role"] == "admin"


def test_a_person_needs_the_csrf_token_to_write() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("ada", password="x", is_staff=True))
    response = client.post("/api/v1/viewers")
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "forbidden"


def run(*args: str) -> str:
    out = StringIO()
    call_command("tokens", *args, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_documentation_makes_tokens_as_the_command_takes_them(page: str) -> None:
    Tenant.objects.create(slug="acme", name="Acme")
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"manage\.py tokens (create [^#)`\n]*)", text)
    assert lines
    for line in lines:
        assert "wl_" in run(*shlex.split(line))


def test_the_command_prints_a_secret_once() -> None:
    plain = run("create", "ci", "--role", "operator", "--quiet").strip()
    assert call("POST", "/api/v1/viewers", plain).status_code == 200
    prefix = plain.split("_")[1]
    listed = run("list")
    assert prefix in listed
    assert "live" in listed
    assert plain.split("_", 2)[2] not in listed
    rotated = run("rotate", prefix, "--overlap-minutes", "1").splitlines()[-1]
    assert call("GET", "/api/v1/viewers", rotated).status_code == 200
    assert "Revoked." in run("revoke", prefix)
    assert "before" in run("revoke", prefix)
    assert "revoked" in run("list", "--tenant", "default")


def test_the_command_makes_tokens_that_end_and_tokens_of_other_tenants() -> None:
    Tenant.objects.create(slug="other", name="Other")
    run("create", "x", "--role", "viewer", "--tenant", "other", "--expires-in-days", "1.5")
    made = ApiToken.objects.get(tenant__slug="other")
    assert made.expires_at is not None
    assert timedelta(hours=35) < made.expires_at - made.created_at < timedelta(hours=37)
    assert "Other" not in run("list", "--tenant", "default")


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("create", "x"),
        ("create", "x", "--role", "root"),
        ("create", "x", "--role", "viewer", "--tenant", "none"),
        ("create", "x", "--role", "viewer", "--expires-in-days", "0"),
        ("create", "x", "--role", "viewer", "--expires-in-days", "nan"),
        ("create", " ", "--role", "viewer"),
        ("rotate", "none"),
        ("rotate", "none", "--overlap-minutes", "-1"),
        ("revoke", "none"),
    ],
)
def test_the_command_refuses_with_a_sentence(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        run(*args)
    assert str(refused.value)
    assert not ApiToken.objects.exists()
