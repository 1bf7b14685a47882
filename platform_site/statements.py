"""SQL that the ORM does not say plainly lives in ``.sql`` files; this loads them.

One file is one statement, its name is the name of the file, its first lines are comments that say
what it does. Parameters are named (``%(run_ids)s``). Nothing is ever assembled from strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from django.db import connection
from psycopg import sql

_COMMENT = re.compile(r"--[^\n]*")


class Statements:
    """The statements of one package folder, by name: ``statements.rows("lock_runs", run_ids=...)``."""

    def __init__(self, package: str) -> None:
        files = sorted(resources.files(package).iterdir(), key=lambda file: file.name)
        self.package = package
        self.texts: Mapping[str, str] = {
            file.name.removesuffix(".sql"): _COMMENT.sub("", file.read_text(encoding="utf-8"))
            .strip()
            .rstrip(";")
            for file in files
            if file.name.endswith(".sql")
        }

    def rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows and return all of them."""
        with connection.cursor() as cursor:
            cursor.execute(self.texts[name], params)
            return cursor.fetchall()

    def records(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """Run a statement that returns rows and return them by column name."""
        with connection.cursor() as cursor:
            cursor.execute(self.texts[name], params)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def run(self, name: str, /, **params: Any) -> int:
        """Run a statement for its effect and return how many rows it touched."""
        with connection.cursor() as cursor:
            cursor.execute(self.texts[name], params)
            return cursor.rowcount


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert many rows by COPY; table and columns are names from our own code, never from a request."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(column) for column in columns)
    )
    with connection.cursor() as cursor, cursor.copy(statement.as_string()) as copy:
        for row in rows:
            copy.write_row(row)
