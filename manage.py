#!/usr/bin/env python3
"""The project's command line. Commands that touch the database bring the embedded server with them."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command, with the embedded PostgreSQL for its duration where it needs one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    command = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].isidentifier() else "help"
    os.environ.setdefault("WORKLOAD_PROCESS_KIND", command)
    try:
        from django.conf import settings
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as error:
        sys.exit(
            f"{error}. Run ./run install once, then .venv/bin/python manage.py; or ./run up, ./run demo."
        )

    from platform_site.embedded.commands import database_for
    from platform_site.embedded.errors import EmbeddedError

    try:
        workload = settings.WORKLOAD  # all are read here, so that what is wrong with them is said plainly
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    try:
        with database_for(sys.argv[1:], workload):
            execute_from_command_line(sys.argv)
    except EmbeddedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
