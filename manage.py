#!/usr/bin/env python3
"""The project's command line. Commands that touch the database bring the embedded server with them."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command, with the embedded PostgreSQL for its duration where it needs one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    os.environ.setdefault("WORKLOAD_PROCESS_KIND", command)

    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from platform_site.embedded.commands import database_for
    from platform_site.embedded.errors import EmbeddedError

    try:
        with database_for(sys.argv[1:]):
            execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, EmbeddedError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
