from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test import Client

from platform_site.access.models import ApiToken, IdempotencyRecord, Tenant
from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role, reaches
from platform_site.access.secrets import digest_of, new_secret
from platform_site.access.tenants import default_tenant

pytestmark = pytest.mark.urls("tests.platform_site.furniture")


@pytest.mark.django_db
def test_the_default_tenant_comes_with_the_migrations() -> None:
    assert Tenant.objects.filter(slug="default").exists()


@pytest.mark.django_db(transaction=True)
def test_the_default_tenant_is_made_again_once_by_many_at_once() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM access_tenant")
    start = threading.Barrier(4)
    found: list[int] = []

    def make() -> None:
        start.wait()
        found.append(default_tenant().id)
        connection.close()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 4


@pytest.mark.django_db
@pytest.mark.parametrize("slug", ["", "Upper", "-dash", "a b", "ä", "a_b"])
def test_the_database_refuses_slugs_that_are_not_plain(slug: str) -> None:
    with pytest.raises(IntegrityError, match="tenant_slug_plain"):
        Tenant.objects.create(slug=slug, name="T")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"role": "root"}, "api_token_role_known"),
        ({"digest": b"short"}, "api_token_digest_sha256"),
        ({"name": ""}, "api_token_name_given"),
    ],
)
def test_the_database_refuses_tokens_that_cannot_be(changes: dict[str, Any], constraint: str) -> None:
    fine = {"tenant": default_tenant(), "name": "n", "role": "viewer", "prefix": "p", "digest": bytes(32)}
    with pytest.raises(IntegrityError, match=constraint):
        ApiToken.objects.create(**{**fine, **changes})


@pytest.mark.django_db
def test_nothing_of_a_secret_is_stored() -> None:
    token = create_token(tenant=default_tenant(), name="ci", role=Role.VIEWER)
    row = ApiToken.objects.get(id=token.id)
    assert bytes(row.digest) == digest_of(token.plain)
    secret = token.plain.removeprefix(f"wl_{token.prefix}_")
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM access_apitoken AS t WHERE id = %s", [token.id])
        assert secret not in cursor.fetchone()[0]
    assert secret not in repr(token)
    assert secret not in str(row)


def test_secrets_have_256_bits_and_a_visible_prefix() -> None:
    first, second = new_secret(), new_secret()
    assert first.plain.startswith(f"wl_{first.prefix}_")
    assert len(first.plain.removeprefix(f"wl_{first.prefix}_")) == 43  # 32 bytes in base64url
    assert first.plain != second.plain
    assert first.plain not in repr(first)


@pytest.mark.parametrize(
    ("role", "reached"),
    [
        ("viewer", {Role.VIEWER}),
        ("operator", {Role.VIEWER, Role.OPERATOR}),
        ("admin", {Role.VIEWER, Role.OPERATOR, Role.ADMIN}),
        ("worker-enrolment", set()),
        ("worker", set()),
        ("", set()),
    ],
)
def test_the_ladder(role: str, reached: set[Role]) -> None:
    assert {needed for needed in Role if reaches(role, needed)} == reached


@pytest.fixture
def admin_client(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client


@pytest.mark.urls("platform_site.urls")  # a page that is refused shows the console around it
def test_the_admin_shows_tokens_and_never_a_digest(admin_client: Client) -> None:
    token = create_token(tenant=default_tenant(), name="ci", role=Role.VIEWER)
    for page in ("/admin/access/apitoken/", f"/admin/access/apitoken/{token.id}/change/"):
        text = admin_client.get(page).content.decode()
        assert token.prefix in text
        assert "digest" not in text.lower()
    assert admin_client.get("/admin/access/apitoken/add/").status_code == 403
    assert admin_client.get("/admin/access/tenant/").status_code == 200


def test_the_admin_revokes_by_the_operation(admin_client: Client) -> None:
    token = create_token(tenant=default_tenant(), name="ci", role=Role.VIEWER)
    admin_client.post("/admin/access/apitoken/", {"action": "revoke", "_selected_action": [str(token.id)]})
    assert ApiToken.objects.get(id=token.id).revoked_at is not None


def test_a_tenant_keeps_its_slug(admin_client: Client) -> None:
    tenant = default_tenant()
    admin_client.post(
        f"/admin/access/tenant/{tenant.id}/change/", {"slug": "other", "name": "Renamed", "max_running": "5"}
    )
    tenant.refresh_from_db()
    assert (tenant.slug, tenant.name, tenant.max_running) == ("default", "Renamed", 5)


@pytest.mark.django_db
def test_the_database_refuses_a_second_record_for_one_key() -> None:
    fields = {
        "tenant": default_tenant(),
        "principal_id": "p",
        "operation": "o",
        "key": "k",
        "digest": bytes(32),
    }
    IdempotencyRecord.objects.create(**fields, expires_at="2030-01-01T00:00Z")
    with pytest.raises(IntegrityError, match="idempotency_scope_unique"):
        IdempotencyRecord.objects.create(**fields, expires_at="2030-01-01T00:00Z")
