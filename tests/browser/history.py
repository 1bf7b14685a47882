"""A small platform with some history, written straight into the tables.

Pages are tested against states that would take many operations to reach; the constraints of the database hold
here as everywhere, so nothing shown here could not be stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from dispatch.models import Dispatch, Leadership, Worker
from platform_site.access.tenants import default_tenant
from workflows.kernel.states import RunState, TaskState
from workflows.models import (
    Attempt,
    AttemptLog,
    ReadyQueue,
    Run,
    StateEvent,
    Task,
    TaskClass,
    Workflow,
    WorkflowVersion,
)


def write(model: type[Model], *rows: Model) -> list[Any]:
    """Insert rows past the guards that keep everything but the owner from writing."""
    return list(QuerySet(model).bulk_create(rows))


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A task to write: its key, state and what shows of it."""

    key: str
    state: TaskState
    kind: str = "python"
    action: str = "text.clean"
    depends_on: tuple[str, ...] = ()
    attempts: tuple[str, ...] = ()
    error: str = ""
    progress: str = ""
    percent: int | None = None
    output: str | None = None


def run_id_of(moment: datetime) -> UUID:
    """A time-ordered id as it would have been given then."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | uuid7().int & ((1 << 80) - 1))


class History:
    """Writes workflows, runs and workers of the default tenant, as of `now`."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or timezone.now()
        self.tenant = default_tenant()
        self.classes: dict[str, TaskClass] = {}

    def workflow(self, name: str, tasks: Sequence[TaskFacts], versions: int = 1) -> WorkflowVersion:
        workflow = Workflow.objects.create(
            tenant=self.tenant, name=name, latest_version=versions, created_by="api:docs"
        )
        definition = {
            "id": name,
            "concurrency": 16,
            "tasks": [
                {
                    "key": task.key,
                    "executor": task.kind,
                    "action": task.action,
                    "depends_on": list(task.depends_on),
                }
                for task in tasks
            ],
        }
        for number in range(1, versions + 1):
            text = json.dumps({**definition, "concurrency": number + 10})
            version = WorkflowVersion.objects.create(
                workflow=workflow,
                number=number,
                definition=text,
                digest=hashlib.sha256(text.encode()).digest(),
                task_count=len(tasks),
                created_by="api:docs",
            )
        return version

    def task_class(self, kind: str) -> TaskClass:
        if kind not in self.classes:
            self.classes[kind] = TaskClass.objects.get_or_create(
                tenant=self.tenant, executor_kind=kind, requires={}
            )[0]
        return self.classes[kind]

    def run(
        self,
        version: WorkflowVersion,
        state: RunState,
        tasks: Sequence[TaskFacts],
        *,
        age: timedelta = timedelta(minutes=2),
        **facts: Any,
    ) -> Run:
        counts = {f"tasks_{s.value}": sum(task.state is s for task in tasks) for s in TaskState}
        began = self.now - age
        values: dict[str, Any] = {
            "id": run_id_of(began),
            "tenant": self.tenant,
            "workflow": version.workflow,
            "version": version,
            "state": state,
            "revision": 4,
            "event_seq": 0,
            "concurrency": 16,
            "tasks_total": len(tasks),
            "turn_at": began,
            "created_at": began,
            "created_by": "api:docs",
            "started_at": None if state is RunState.PENDING else began + timedelta(seconds=1),
            "finished_at": began + age / 2 if state.terminal else None,
            "last_dispatched_at": self.now,
            **counts,
            **facts,
        }
        (run,) = write(Run, Run(**values))
        self._tasks(run, tasks)
        ready = sum(task.state is TaskState.READY for task in tasks)
        if ready:
            write(
                ReadyQueue,
                ReadyQueue(
                    run=run,
                    task_class=self.task_class("python"),
                    tenant=self.tenant,
                    ready=ready,
                    open=True,
                    turn_at=began,
                ),
            )
        return run

    def _tasks(self, run: Run, facts: Sequence[TaskFacts]) -> None:
        rows = write(Task, *(self._task(run, position, task) for position, task in enumerate(facts)))
        attempts = [
            self._attempt(run, row, number, state, task.error)
            for row, task in zip(rows, facts, strict=True)
            for number, state in enumerate(task.attempts, start=1)
        ]
        lines = [
            line
            for attempt in write(Attempt, *attempts)
            for line in (
                AttemptLog(
                    run=run, attempt=attempt, level="info", text=f"cleaned page {attempt.number + 28}"
                ),
                AttemptLog(run=run, attempt=attempt, level="warning", text="page 30 has 2 tables, both kept"),
            )
        ]
        write(AttemptLog, *lines)

    def _task(self, run: Run, position: int, facts: TaskFacts) -> Task:
        ended, began = facts.state.terminal, run.created_at + timedelta(seconds=1)
        return Task(
            run=run,
            position=position,
            key=facts.key,
            state=facts.state,
            task_class=self.task_class(facts.kind),
            executor_kind=facts.kind,
            action=facts.action,
            unmet_dependencies=1 if facts.state is TaskState.WAITING_DEPENDENCIES else 0,
            attempts=len(facts.attempts),
            attempts_used=len(facts.attempts),
            ready_at=self.now + timedelta(seconds=40) if facts.state is TaskState.WAITING_RETRY else None,
            started_at=began if facts.attempts else None,
            finished_at=began + timedelta(seconds=9) if ended else None,
            output=facts.output,
            error_code=facts.error,
            error_message="The service asked to slow down." if facts.error else "",
            progress_percent=facts.percent,
            progress_text=facts.progress,
        )

    def _attempt(self, run: Run, task: Task, number: int, state: str, error: str) -> Attempt:
        began = run.created_at + timedelta(seconds=number * 5)
        return Attempt(
            run=run,
            task=task,
            number=number,
            state=state,
            worker_name=f"worker-{number + 2}",
            generation=88_000 + task.id * 100 + number,
            started_at=began,
            deadline=self.now + timedelta(minutes=4, seconds=36),
            finished_at=None if state == "running" else began + timedelta(seconds=4),
            error_code=error if state == "failed" else "",
            reason="lease expired" if state == "interrupted" else "",
        )

    def events(self, run: Run, moves: Sequence[tuple[str, str, str, str, str]]) -> None:
        """`moves` are entity, key, from, to, reason; their numbers go on from the run's last."""
        rows = [
            StateEvent(
                run=run,
                seq=run.event_seq + number,
                at=run.created_at + timedelta(seconds=number),
                entity=entity,
                key=key,
                from_state=source,
                to_state=target,
                reason=reason,
                actor="coordinator-1",
            )
            for number, (entity, key, source, target, reason) in enumerate(moves, start=1)
        ]
        write(StateEvent, *rows)
        change(run, event_seq=run.event_seq + len(rows))

    def worker(self, name: str, kinds: Sequence[str], slots: int, state: str = "active") -> Worker:
        (worker,) = write(
            Worker,
            Worker(
                display_name=name,
                protocol_version=1,
                executor_kinds=list(kinds),
                labels={"zone": "a"},
                max_concurrency=slots,
                state=state,
                session_digest=hashlib.sha256(name.encode()).digest(),
                registered_at=self.now - timedelta(hours=2),
                last_heartbeat_at=self.now - timedelta(seconds=3 if state == "active" else 400),
                stopped_at=self.now - timedelta(seconds=300) if state == "stopped" else None,
            ),
        )
        return worker  # type: ignore[no-any-return]  # bulk_create hands back what it got

    def lease(self, worker: Worker, task: Task) -> None:
        identity = uuid7()
        write(
            Dispatch,
            Dispatch(
                id=identity,
                run=task.run,
                task=task,
                task_class=task.task_class,
                state="leased",
                worker=worker,
                attempt_number=max(task.attempts, 1),
                generation=int(task.id) * 10,
                lease_digest=identity.bytes * 2,
                created_at=self.now - timedelta(seconds=20),
                leased_at=self.now - timedelta(seconds=15),
                lease_expires_at=self.now + timedelta(seconds=11),
                attempt_deadline=self.now + timedelta(minutes=4),
            ),
        )

    def pending(self, task: Task, age: timedelta = timedelta(seconds=20)) -> None:
        write(
            Dispatch,
            Dispatch(
                run=task.run,
                task=task,
                task_class=task.task_class,
                state="pending",
                created_at=self.now - age,
            ),
        )

    def leader(self, silent_for: timedelta = timedelta(seconds=1)) -> None:
        Leadership.objects.update_or_create(
            id=1,
            defaults={
                "epoch": 42,
                "holder": "coordinator-1",
                "since": self.now - timedelta(hours=3),
                "beat_at": self.now - silent_for,
            },
        )


def change(row: Model, **values: Any) -> None:
    """Set columns of a row past the guards."""
    QuerySet(type(row)).filter(pk=row.pk).update(**values)
    for name, value in values.items():
        setattr(row, name, value)


def handbook_tasks(done: int = 24) -> list[TaskFacts]:
    """A run in the middle of its work: something of every state."""
    finished = [
        TaskFacts(
            f"read-{n:02d}",
            TaskState.SUCCEEDED,
            action="text.read",
            attempts=("succeeded",),
            output='{"pages": 50}',
        )
        for n in range(done)
    ]
    return [
        TaskFacts(
            "list", TaskState.SUCCEEDED, action="files.list", attempts=("succeeded",), output='{"files": 48}'
        ),
        *finished,
        TaskFacts(
            "clean-c",
            TaskState.RUNNING,
            depends_on=("list", "read-00"),
            attempts=("interrupted", "running"),
            progress="page 31 of 50",
            percent=62,
        ),
        TaskFacts("clean-d", TaskState.WAITING_RETRY, attempts=("failed", "failed"), error="rate_limited"),
        TaskFacts("clean-e", TaskState.QUEUED),
        TaskFacts("clean-f", TaskState.READY),
        TaskFacts("publish", TaskState.WAITING_APPROVAL, kind="approval", action="gate"),
        TaskFacts("bad-file", TaskState.FAILED, attempts=("failed",), error="unreadable"),
        TaskFacts("bad-merge", TaskState.SKIPPED, depends_on=("bad-file",)),
        *(TaskFacts(f"merge-{n}", TaskState.WAITING_DEPENDENCIES, depends_on=("clean-c",)) for n in range(6)),
    ]


def settled(tasks: Sequence[TaskFacts], state: TaskState) -> list[TaskFacts]:
    """The same tasks, all ended: those that succeeded or failed stay, the rest becomes `state`."""
    attempt: Mapping[TaskState, tuple[str, ...]] = {
        TaskState.SUCCEEDED: ("succeeded",),
        TaskState.CANCELED: (),
        TaskState.SKIPPED: (),
    }
    return [
        task
        if task.state in (TaskState.SUCCEEDED, TaskState.FAILED)
        else TaskFacts(task.key, state, task.kind, task.action, task.depends_on, attempt[state])
        for task in tasks
    ]


def busy_platform() -> UUID:
    """Everything a console can show, at once; returns the id of the run that is in the middle of its work."""
    history = History()
    middle = handbook_tasks()
    version = history.workflow("index-handbook", middle, versions=7)
    good = [task for task in settled(middle, TaskState.SUCCEEDED) if task.state is TaskState.SUCCEEDED]
    other = history.workflow("nightly-quality", middle)
    invoices = [TaskFacts("extract", TaskState.QUEUED, kind="gpu", action="invoice.extract")]
    extract = history.workflow("invoice-extract", invoices)
    history.run(version, RunState.SUCCEEDED, good, age=timedelta(hours=3))
    history.run(other, RunState.FAILED, settled(middle, TaskState.SKIPPED), age=timedelta(hours=1))
    history.run(
        other,
        RunState.CANCELED,
        settled(good[:3] + middle[-6:], TaskState.CANCELED),
        age=timedelta(minutes=50),
    )
    stuck = history.run(
        extract,
        RunState.RUNNING,
        invoices,
        age=timedelta(minutes=22),
        last_dispatched_at=history.now - timedelta(minutes=22),
        created_by="analyst-2",
    )
    run = history.run(version, RunState.RUNNING, middle, labels={"team": "docs", "zone": "a"}, priority=2)
    history.run(other, RunState.PENDING, [TaskFacts("first", TaskState.READY)], age=timedelta(seconds=4))
    history.events(
        run,
        [
            ("run", "", "", "pending", "started"),
            ("task", "list", "ready", "queued", "enqueued"),
            ("run", "", "pending", "running", "first task queued"),
            ("task", "list", "queued", "running", "claimed"),
            ("attempt", "list/1", "", "running", "claimed"),
            ("attempt", "list/1", "running", "succeeded", "result accepted"),
            ("task", "list", "running", "succeeded", "result accepted"),
            ("attempt", "clean-c/1", "running", "interrupted", "lease expired"),
            ("task", "clean-c", "running", "waiting_retry", "lease expired"),
        ],
    )
    workers = [history.worker(f"worker-{n}", ["python", "agent"], 16) for n in range(3, 6)]
    history.worker("worker-6", ["mock"], 16)
    history.worker("worker-2", ["python"], 16, state="draining")
    history.worker("worker-1", ["python"], 16, state="offline")
    history.worker("worker-0", ["python"], 16, state="stopped")
    history.lease(workers[0], Task.objects.get(run=run, key="clean-c"))
    history.pending(Task.objects.get(run=run, key="clean-e"))
    history.pending(Task.objects.get(run=stuck, key="extract"), age=timedelta(minutes=22))
    history.leader()
    return UUID(str(run.id))
