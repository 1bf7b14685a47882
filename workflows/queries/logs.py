"""What the attempts of a task logged, in the order it was kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F

from platform_site.api.pagination import Key, Keyset, Page
from workflows.models import AttemptLog, Task

LOGS = Keyset("logs", [Key("attempt_id", int), Key("id", int)])


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """One line. `cleaned` says that characters which cannot be stored were replaced, or that it was cut."""

    id: int
    attempt_id: int
    number: int
    at: datetime
    level: str
    text: str
    cleaned: bool


def task_logs(
    *,
    tenant_id: int,
    run_id: UUID,
    key: str,
    attempt: int | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[LoggedLine] | None:
    """A page of a task's lines, attempt by attempt, oldest first; of one attempt if it is named.

    None when the task is not there. Raises InvalidCursor. Two statements.
    """
    task_id = (
        Task.objects.filter(run_id=run_id, run__tenant_id=tenant_id, key=key)
        .values_list("id", flat=True)
        .first()
    )
    if task_id is None:
        return None
    lines = AttemptLog.objects.filter(attempt__run_id=run_id, attempt__task_id=task_id)
    if attempt is not None:
        lines = lines.filter(attempt__number=attempt)
    filters = {"run": run_id, "task": key, "attempt": attempt}
    rows = lines.annotate(number=F("attempt__number")).values(*LoggedLine.__slots__)
    return LOGS.page(rows, limit=limit, cursor=cursor, filters=filters).map(lambda row: LoggedLine(**row))
