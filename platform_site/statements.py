"""SQL that the ORM does not say plainly lives in ``.sql`` files; this loads them.

One file is one statement, its name is the name of the file, its first lines are comments that say
what it does. Parameters are named (``%(run_ids)s``). Nothing is ever assembled from strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import sql

_COMMENT = re.compile(r"--[^\n]*")


def array_literal(values: list[Any]) -> str:
    """A list as PostgreSQL writes an array; the statement names its type (``%(ids)s::uuid[]``).

    The driver's own dumping of lists is written in Python and generic: for the statements here, a dozen arrays
    each, it took a third of an operation's time.
    """
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (int, UUID)):  # a bool is written True, which PostgreSQL reads
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    raise TypeError(f"{type(value).__name__} does not go into an array.")


def _bound(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: array_literal(value) if isinstance(value, list) else value for name, value in params.items()
    }


def _columns(cursor: CursorWrapper) -> list[str]:
    """The names of the columns of a result, none without one; ``description`` would make an object of each."""
    result = cursor.pgresult
    return [] if result is None else [result.fname(place).decode() for place in range(result.nfields)]


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
            cursor.execute(self.texts[name], _bound(params))
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    def records(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """Run a statement that returns rows and return them by column name."""
        with connection.cursor() as cursor:
            cursor.execute(self.texts[name], _bound(params))
            names = _columns(cursor)
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def run(self, name: str, /, **params: Any) -> int:
        """Run a statement for its effect and return how many rows it touched."""
        with connection.cursor() as cursor:
            cursor.execute(self.texts[name], _bound(params))
            touched: int = cursor.rowcount
        return touched


@dataclass(slots=True)
class Call:
    """One statement of a batch; its rows, and how many it touched, are there once the batch ran."""

    name: str
    text: str
    params: Mapping[str, Any]
    expect: int | None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    touched: int = 0

    def records(self) -> list[dict[str, Any]]:
        """The rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Batch:
    """Statements that do not wait for each other's answers, sent in one go (PostgreSQL's pipeline mode).

    The server runs them in order while the client still prepares the next ones; one round trip instead of
    one each. An error of any of them surfaces in ``run`` and leaves the transaction failed, as always.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def add(self, statements: Statements, name: str, expect: int | None = None, /, **params: Any) -> Call:
        """Note a statement. ``expect`` is how many rows it must touch; its ``rows`` are there after ``run``."""
        call = Call(name, statements.texts[name], _bound(params), expect)
        self._calls.append(call)
        return call

    def __len__(self) -> int:
        """How many statements wait to be sent."""
        return len(self._calls)

    def extend(self, other: Batch) -> None:
        """Note the statements of another batch behind these; their calls are filled when this one runs."""
        self._calls += other._calls

    def run(self) -> None:
        """Send everything noted since the last run. Raises UnexpectedRowCount."""
        calls, self._calls = self._calls, []
        if not calls:
            return
        with ExitStack() as stack:
            cursors = [stack.enter_context(connection.cursor()) for _ in calls]
            with connection.wrap_database_errors, connection.connection.pipeline():
                for call, cursor in zip(calls, cursors, strict=True):
                    cursor.execute(call.text, call.params)
            for call, cursor in zip(calls, cursors, strict=True):
                call.touched = cursor.rowcount
                if call.expect not in (None, call.touched):
                    raise UnexpectedRowCount(call.name, call.touched, call.expect)
                call.columns = _columns(cursor)
                if call.columns:
                    call.rows = cursor.fetchall()


class UnexpectedRowCount(RuntimeError):
    """A guarded statement touched another number of rows than were locked for it: a bug, never a lost race."""

    def __init__(self, name: str, touched: int, expected: int | None) -> None:
        super().__init__(f"{name} touched {touched} rows where {expected} were locked for it.")


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert many rows by COPY; table and columns are names from our own code, never from a request."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(column) for column in columns)
    )
    with connection.cursor() as cursor, cursor.copy(statement.as_string()) as copy:
        for row in rows:
            copy.write_row(row)
