"""A crowd of rows, made by SQL: enough of them that the planner must choose an index. Rolled back by the caller.

Mostly history, as in a database of some age: 12,000 finished runs (2,000 of them with 20 tasks), 500 workers that
left, against 40 open runs of 100 tasks with some of everything.
"""

from __future__ import annotations

from pathlib import Path

from django.db import connection

STATEMENTS = Path(__file__).with_suffix(".sql")


def make_crowd() -> None:
    """Insert and analyse it, in the open transaction. Without foreign-key checks: there would be a million."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(STATEMENTS.read_text(encoding="utf-8"))
        cursor.execute("SET LOCAL session_replication_role = origin")
