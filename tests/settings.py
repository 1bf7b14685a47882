"""The site's settings for tests: a throw-away database, whatever the caller's own environment points to.

pytest-django reads these before any conftest. Only the address is decided here; the pytest controller starts
the server (``tests/conftest.py``), and the workers of pytest-xdist inherit the address.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from platform_site.embedded.layout import locate

CLUSTER_VARIABLE = "WORKLOAD_TEST_CLUSTER"
"""The folder of the throw-away cluster; empty where WORKLOAD_TEST_DATABASE_URL brings a database."""


def _environment() -> dict[str, str]:
    values = {
        "WORKLOAD_SECRET_KEY": "for tests only, and long enough that no check complains about its length",
        "WORKLOAD_PROCESS_KIND": "test",
        "WORKLOAD_DEBUG": "0",
    }
    if CLUSTER_VARIABLE in os.environ:  # a worker of pytest-xdist: the controller has decided
        return values
    url = os.environ.get("WORKLOAD_TEST_DATABASE_URL", "")
    folder = ""
    if not url:
        folder = str(Path(tempfile.gettempdir(), f"workload-tests-{secrets.token_hex(6)}"))
        url = locate(Path(folder)).url
    return {
        **values,
        CLUSTER_VARIABLE: folder,
        "DATABASE_URL": url,
        "WORKLOAD_DATA_DIR": folder or tempfile.gettempdir(),
    }


for _name in [name for name in os.environ if name.startswith("WORKLOAD_")]:
    if _name not in {CLUSTER_VARIABLE, "WORKLOAD_TEST_DATABASE_URL", "WORKLOAD_DATA_DIR"}:
        del os.environ[_name]  # the caller's own settings must not decide how tests end
os.environ.pop("COORDINATOR_DATABASE_URL", None)
os.environ.update(_environment())

from platform_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
