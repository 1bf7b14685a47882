from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model

from platform_site.access.operations.revoke_token import revoke_token
from platform_site.access.queries import find_live_token
from platform_site.access.roles import Role
from platform_site.access.secrets import digest_of
from platform_site.launcher import first_start

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_start_makes_an_administrator_and_a_token_and_the_second_finds_them(tmp_path: Path) -> None:
    first = first_start.prepare(tmp_path)
    assert first.admin_is_new
    admin = authenticate(username="admin", password=first.admin_password)
    assert admin is not None
    assert admin.is_superuser
    for name in ("admin_password", "enrolment_token"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    token = find_live_token(digest=digest_of(first.enrolment_token))
    assert token is not None
    assert token.role == Role.WORKER_ENROLMENT

    second = first_start.prepare(tmp_path)
    assert not second.admin_is_new
    assert second.admin_password == first.admin_password
    assert second.enrolment_token == first.enrolment_token


def test_a_password_that_was_changed_is_no_longer_told(tmp_path: Path) -> None:
    first_start.prepare(tmp_path)
    admin = get_user_model().objects.get(username="admin")
    admin.set_password("another, of the administrator's own")
    admin.save(update_fields=["password"])
    assert first_start.prepare(tmp_path).admin_password is None


def test_an_install_with_an_administrator_of_its_own_gets_no_second_one(tmp_path: Path) -> None:
    get_user_model().objects.create_superuser(username="maria", email="", password="hers")
    credentials = first_start.prepare(tmp_path)
    assert credentials.admin_password is None
    assert not get_user_model().objects.filter(username="admin").exists()


def test_a_revoked_token_is_replaced(tmp_path: Path) -> None:
    first = first_start.prepare(tmp_path)
    revoke_token(prefix=first.enrolment_token.split("_")[1])
    second = first_start.prepare(tmp_path)
    assert second.enrolment_token != first.enrolment_token
    assert find_live_token(digest=digest_of(second.enrolment_token)) is not None


def test_secrets_stay_out_of_the_text_of_credentials(tmp_path: Path) -> None:
    credentials = first_start.prepare(tmp_path)
    assert credentials.enrolment_token not in repr(credentials)
    assert str(credentials.admin_password) not in repr(credentials)
