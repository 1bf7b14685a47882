"""How a run is born: the run, all its tasks, its ready queue and its first event. Four statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from platform_site.database import require_transaction
from platform_site.statements import Statements, copy_rows
from workflows.kernel.definition import CompiledWorkflow
from workflows.kernel.states import RunState, TaskState
from workflows.ledger.work import turn_at

_sql = Statements("workflows.ledger.sql")
_TASK_COLUMNS = (
    *("run_id", "position", "key", "state", "task_class_id", "executor_kind", "action", "unmet_dependencies"),
)


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run is born with; everything else follows from the compiled version."""

    id: UUID
    tenant_id: int
    workflow_id: int
    version_id: int
    priority: int
    labels: dict[str, str]
    params: str
    created_by: str
    traceparent: str = ""
    trigger: str = "person"


def create_run(new: NewRun, compiled: CompiledWorkflow, class_ids: Sequence[int], *, now: datetime) -> None:
    """Write the run and all its tasks. ``class_ids`` is the task class of each position."""
    require_transaction()
    graph, tasks = compiled.graph, compiled.definition.tasks
    ready = Counter(dict.fromkeys(class_ids, 0))
    ready.update(class_ids[position] for position in graph.roots)
    turn = turn_at(created_at=now, last_dispatched_at=None, priority=new.priority)
    _insert_run(new, compiled, now=now, turn=turn)
    copy_rows(
        "workflows_task",
        _TASK_COLUMNS,
        (
            (new.id, position, task.key, _first_state(unmet), class_id, task.executor, task.action, unmet)
            for position, (task, unmet, class_id) in enumerate(
                zip(tasks, graph.in_degrees, class_ids, strict=True)
            )
        ),
    )
    _sql.run(
        "insert_ready_queue",
        run_id=new.id,
        tenant_id=new.tenant_id,
        turn_at=turn,
        class_ids=list(ready),
        ready=list(ready.values()),
    )
    _sql.run(
        "insert_events",
        now=now,
        actor=new.created_by,
        run_ids=[new.id],
        seqs=[1],
        entities=["run"],
        keys=[str(new.id)],
        from_states=[""],
        to_states=[RunState.PENDING.value],
        reasons=["run started"],
    )


def _first_state(unmet: int) -> str:
    return (TaskState.WAITING_DEPENDENCIES if unmet else TaskState.READY).value


def _insert_run(new: NewRun, compiled: CompiledWorkflow, *, now: datetime, turn: datetime) -> None:
    total, roots = len(compiled.graph.keys), len(compiled.graph.roots)
    values: dict[str, Any] = {
        "id": new.id,
        "tenant_id": new.tenant_id,
        "workflow_id": new.workflow_id,
        "version_id": new.version_id,
        "priority": new.priority,
        "labels": Jsonb(new.labels),
        "params": new.params,
        "concurrency": compiled.definition.concurrency,
        "tasks_total": total,
        "waiting": total - roots,
        "ready": roots,
        "now": now,
        "turn_at": turn,
        "trigger": new.trigger,
        "traceparent": new.traceparent,
        "created_by": new.created_by,
    }
    _sql.run("insert_run", **values)
