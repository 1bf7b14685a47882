"""Give every combination of executor kind and required labels its small integer id."""

from __future__ import annotations

from collections.abc import Sequence

from platform_site.database import require_transaction
from platform_site.statements import Statements
from workflows.errors import TooManyTaskClasses
from workflows.kernel.canonical import dumps, loads
from workflows.kernel.definition import TaskDefinition

MAX_CLASSES_PER_TENANT = 200

_sql = Statements("workflows.operations.sql")


def intern_classes(*, tenant_id: int, tasks: Sequence[TaskDefinition]) -> list[int]:
    """The class id of each task, in order. One statement if all are known, five at most, whatever the number of tasks.

    Raises TooManyTaskClasses. Runs inside the caller's transaction. Where classes are missing it locks the tenant:
    what another has just made is neither made again nor counted against the bound.
    """
    require_transaction()
    wanted = [(task.executor, dumps(dict(task.requires))) for task in tasks]
    distinct = sorted(set(wanted))
    known = _read(tenant_id, distinct)
    if len(known) < len(distinct):
        _sql.rows("lock_tenant_for_classes", tenant_id=tenant_id)
        known = _read(tenant_id, distinct)
    missing = [one for one in distinct if one not in known]
    if missing:
        made = _sql.rows(
            "insert_task_classes",
            tenant_id=tenant_id,
            kinds=[kind for kind, _ in missing],
            requires=[requires for _, requires in missing],
            most=MAX_CLASSES_PER_TENANT,
        )
        if not made:
            raise TooManyTaskClasses
        known = _read(tenant_id, distinct)
    return [known[one] for one in wanted]


def _read(tenant_id: int, distinct: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    rows = _sql.rows(
        "read_task_classes",
        tenant_id=tenant_id,
        kinds=[kind for kind, _ in distinct],
        requires=[requires for _, requires in distinct],
    )
    return {(kind, dumps(loads(requires))): class_id for class_id, kind, requires in rows}
