"""What a new install lacks: tables, an administrator, a token for its own workers. Later starts find them."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection, connections

from platform_site.access.operations.create_token import create_token
from platform_site.access.queries import find_live_token
from platform_site.access.roles import Role
from platform_site.access.secrets import digest_of
from platform_site.access.tenants import default_tenant
from platform_site.embedded.layout import make_folder

ADMIN_NAME = "admin"
ADMIN_FILE = "admin_password"
ENROLMENT_FILE = "enrolment_token"
MIGRATION_LOCK = 7_301_826_455_017
"""Two starters at once must not both migrate; the number must differ from the platform's other locks."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the launcher may tell its user and its workers."""

    enrolment_token: str = field(repr=False)
    admin_password: str | None = field(repr=False)
    """None: an administrator exists whose password is not ours to know."""
    admin_is_new: bool


def prepare(data_dir: Path) -> Credentials:
    """Migrate, and make what is missing. Leaves no connection open: children come next."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
            try:
                call_command("migrate", interactive=False, verbosity=0)
                make_folder(data_dir)
                password, is_new = _admin(data_dir / ADMIN_FILE)
                token = _enrolment_token(data_dir / ENROLMENT_FILE)
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    finally:
        connections.close_all()
    return Credentials(enrolment_token=token, admin_password=password, admin_is_new=is_new)


def _admin(path: Path) -> tuple[str | None, bool]:
    users = get_user_model()
    admin = users.objects.filter(username=ADMIN_NAME).first()
    if admin is not None:
        kept = _read(path)
        return (kept if kept and admin.check_password(kept) else None), False
    if users.objects.filter(is_superuser=True).exists():
        return None, False
    password = secrets.token_urlsafe(15)
    _write(path, password)
    users.objects.create_superuser(username=ADMIN_NAME, email="", password=password)
    return password, True


def _enrolment_token(path: Path) -> str:
    kept = _read(path)
    if kept:
        found = find_live_token(digest=digest_of(kept))
        if found is not None and found.role == Role.WORKER_ENROLMENT:
            return kept
    name = f"workers of {socket.gethostname()}"[:128]
    plain = create_token(tenant=default_tenant(), name=name, role=Role.WORKER_ENROLMENT).plain
    _write(path, plain)
    return plain


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


def _write(path: Path, secret: str) -> None:
    """Only for our own eyes, and whole: the name appears when the content is there."""
    draft = path.with_name(f"{path.name}.new-{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{secret}\n")
    draft.replace(path)
