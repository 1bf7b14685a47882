"""Schema, constraints and indexes of the run history. Behaviour lives in the ledger and the operations.

Columns named ``state`` and everything counted on a run are written by ``workflows.ledger`` alone.
JSON that must come back digit for digit (definitions, params, outputs) is kept as canonical text:
``jsonb`` would reorder keys and rewrite numbers.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from platform_site.guarded import GuardedManager, GuardedModel
from workflows.kernel.states import AttemptState, RunState, TaskState

RUN_TERMINAL = sorted(state.value for state in RunState if state.terminal)
TASK_TERMINAL = sorted(state.value for state in TaskState if state.terminal)
COUNTED_STATES = tuple(state.value for state in TaskState)
DIGEST_BYTES = 32


def _state_choices(states: type[RunState | TaskState | AttemptState]) -> list[tuple[str, str]]:
    return [(state.value, state.value.replace("_", " ")) for state in states]


def _is_one_of(states: type[RunState | TaskState | AttemptState], name: str) -> CheckConstraint:
    return CheckConstraint(condition=Q(state__in=sorted(state.value for state in states)), name=name)


class Workflow(models.Model):
    """A name under which versions are published; the definition's ``id`` is the name."""

    tenant = models.ForeignKey("access.Tenant", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=64)
    latest_version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.CharField(max_length=200)

    class Meta:
        constraints: ClassVar = [UniqueConstraint(fields=["tenant", "name"], name="workflow_name_unique")]

    def __str__(self) -> str:
        return self.name


class WorkflowVersion(models.Model):
    """One published definition. Immutable: a change is a new version."""

    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.TextField(help_text="normalised definition, canonical JSON")
    digest = models.BinaryField(max_length=DIGEST_BYTES)
    task_count = models.PositiveIntegerField()
    source = models.CharField(max_length=16, default="api", help_text="api, draft or command")
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.CharField(max_length=200)

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["workflow", "number"], name="workflow_version_number_unique"),
            CheckConstraint(condition=Q(number__gte=1), name="workflow_version_number_from_1"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class Run(GuardedModel):
    """One execution of a version. Its task counters are one column per task state.

    Foreign keys here and below have no index of their own (``db_index=False``) where another index or constraint
    begins with them, or where the rows they point to are never deleted: the tables are hot.
    """

    OWNER = "workflows.ledger"
    GUARDED_FIELDS = frozenset(
        {"state", "revision", "event_seq", "cancel_requested_at", "last_dispatched_at", "turn_at"}
        | {"started_at", "finished_at", "tasks_total"}
        | {f"tasks_{state}" for state in COUNTED_STATES}
    )

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey("access.Tenant", on_delete=models.PROTECT, related_name="+", db_index=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="runs", db_index=False)
    version = models.ForeignKey(WorkflowVersion, on_delete=models.PROTECT, related_name="runs")
    state = models.CharField(max_length=10, choices=_state_choices(RunState))
    revision = models.PositiveBigIntegerField()
    event_seq = models.PositiveBigIntegerField()
    priority = models.SmallIntegerField(default=0)
    labels = models.JSONField(default=dict)
    params = models.TextField(default="{}", help_text="canonical JSON")
    concurrency = models.PositiveIntegerField()
    tasks_total = models.PositiveIntegerField()
    tasks_waiting_dependencies = models.PositiveIntegerField(db_default=0)
    tasks_ready = models.PositiveIntegerField(db_default=0)
    tasks_queued = models.PositiveIntegerField(db_default=0)
    tasks_running = models.PositiveIntegerField(db_default=0)
    tasks_waiting_retry = models.PositiveIntegerField(db_default=0)
    tasks_waiting_approval = models.PositiveIntegerField(db_default=0)
    tasks_succeeded = models.PositiveIntegerField(db_default=0)
    tasks_failed = models.PositiveIntegerField(db_default=0)
    tasks_canceled = models.PositiveIntegerField(db_default=0)
    tasks_skipped = models.PositiveIntegerField(db_default=0)
    cancel_requested_at = models.DateTimeField(null=True)
    last_dispatched_at = models.DateTimeField(null=True)
    turn_at = models.DateTimeField(help_text="when its turn comes; smallest first")
    trigger = models.CharField(max_length=16, db_default="person", help_text="person, schedule, event or run")
    parent_task = models.ForeignKey("workflows.Task", null=True, on_delete=models.SET_NULL, related_name="+")
    traceparent = models.CharField(max_length=64, db_default="", blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = GuardedManager["Run"]()

    class Meta:
        constraints: ClassVar = [
            _is_one_of(RunState, "run_state_known"),
            CheckConstraint(condition=Q(priority__gte=-10, priority__lte=10), name="run_priority_range"),
            # I6: a run is terminal exactly when it has a finish time and no open task.
            CheckConstraint(
                condition=Q(state__in=RUN_TERMINAL, finished_at__isnull=False)
                | (~Q(state__in=RUN_TERMINAL) & Q(finished_at__isnull=True)),
                name="run_terminal_iff_finished",
            ),
            CheckConstraint(
                condition=Q(
                    tasks_total=F("tasks_waiting_dependencies")
                    + F("tasks_ready")
                    + F("tasks_queued")
                    + F("tasks_running")
                    + F("tasks_waiting_retry")
                    + F("tasks_waiting_approval")
                    + F("tasks_succeeded")
                    + F("tasks_failed")
                    + F("tasks_canceled")
                    + F("tasks_skipped")
                ),
                name="run_counters_add_up",
            ),
            CheckConstraint(
                condition=(
                    Q(state__in=RUN_TERMINAL)
                    & Q(
                        tasks_total=F("tasks_succeeded")
                        + F("tasks_failed")
                        + F("tasks_canceled")
                        + F("tasks_skipped")
                    )
                )
                | (
                    ~Q(state__in=RUN_TERMINAL)
                    & Q(
                        tasks_total__gt=F("tasks_succeeded")
                        + F("tasks_failed")
                        + F("tasks_canceled")
                        + F("tasks_skipped")
                    )
                ),
                name="run_terminal_iff_tasks_are",
            ),
            # I7: the workflow's own bound, whatever the interleaving.
            CheckConstraint(
                condition=Q(concurrency__gte=F("tasks_queued") + F("tasks_running")),
                name="run_concurrency_kept",
            ),
        ]
        indexes: ClassVar = [
            # run list, newest first
            Index(fields=["tenant", "-created_at", "-id"], name="run_newest"),
            Index(fields=["workflow", "-created_at", "-id"], name="run_of_workflow_newest"),
            Index(fields=["tenant", "state", "-created_at", "-id"], name="run_by_state_newest"),
            # converge_cancellations: open runs whose cancel was asked for
            Index(
                fields=["cancel_requested_at"],
                name="run_cancel_pending",
                condition=Q(cancel_requested_at__isnull=False, finished_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class TaskClass(models.Model):
    """Tasks that the same workers can take: kind and required labels, within a tenant."""

    id = models.AutoField(primary_key=True)
    tenant = models.ForeignKey("access.Tenant", on_delete=models.CASCADE, related_name="+")
    executor_kind = models.CharField(max_length=64)
    requires = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "task classes"
        constraints: ClassVar = [
            UniqueConstraint(fields=["tenant", "executor_kind", "requires"], name="task_class_unique")
        ]

    def __str__(self) -> str:
        return f"{self.executor_kind} {self.requires}" if self.requires else self.executor_kind


class Task(GuardedModel):
    """One node of a run. A run's tasks may one day outnumber its version's: nothing assumes equality."""

    OWNER = "workflows.ledger"
    GUARDED_FIELDS = frozenset(
        {"state", "unmet_dependencies", "attempts", "attempts_used", "ready_at", "output", "reason"}
        | {"started_at", "finished_at", "error_code", "error_message"}
    )

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    position = models.PositiveIntegerField()
    map_index = models.PositiveIntegerField(null=True)
    key = models.CharField(max_length=128)
    state = models.CharField(max_length=20, choices=_state_choices(TaskState))
    task_class = models.ForeignKey(TaskClass, on_delete=models.PROTECT, related_name="+", db_index=False)
    executor_kind = models.CharField(max_length=64)
    action = models.CharField(max_length=256)
    unmet_dependencies = models.PositiveIntegerField()
    attempts = models.PositiveIntegerField(db_default=0, help_text="attempt numbers given so far")
    attempts_used = models.PositiveIntegerField(
        db_default=0, help_text="attempts that count against the retry budget"
    )
    ready_at = models.DateTimeField(null=True, help_text="when its retry is due")
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    output = models.TextField(null=True, help_text="canonical JSON of the success")  # noqa: DJ001 - null is "none", "" is not JSON
    error_code = models.CharField(max_length=128, db_default="", blank=True)
    error_message = models.TextField(db_default="", blank=True)
    reason = models.CharField(max_length=200, db_default="", blank=True, help_text="why it is in this state")
    progress_percent = models.PositiveSmallIntegerField(null=True)
    progress_text = models.CharField(max_length=256, db_default="", blank=True)

    objects = GuardedManager["Task"]()

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["run", "key"], name="task_key_unique"),
            UniqueConstraint(
                fields=["run", "position", "map_index"], name="task_position_unique", nulls_distinct=False
            ),
            _is_one_of(TaskState, "task_state_known"),
            CheckConstraint(
                condition=Q(state__in=TASK_TERMINAL, finished_at__isnull=False)
                | (~Q(state__in=TASK_TERMINAL) & Q(finished_at__isnull=True)),
                name="task_terminal_iff_finished",
            ),
            CheckConstraint(
                condition=Q(state="waiting_retry", ready_at__isnull=False)
                | (~Q(state="waiting_retry") & Q(ready_at__isnull=True)),
                name="task_ready_at_iff_waiting_retry",
            ),
            # I5: only a task without unmet dependencies may move towards running.
            CheckConstraint(
                condition=~Q(
                    state__in=["ready", "queued", "running", "waiting_retry", "waiting_approval", "succeeded"]
                )
                | Q(unmet_dependencies=0),
                name="task_starts_after_dependencies",
            ),
            CheckConstraint(
                condition=Q(attempts__gte=F("attempts_used")), name="task_budget_within_attempts"
            ),
        ]
        indexes: ClassVar = [
            # enqueue: the ready tasks of a run in order
            Index(
                fields=["run", "position"],
                include=["task_class"],
                name="task_ready",
                condition=Q(state="ready"),
            ),
            # promote due retries
            Index(
                fields=["ready_at"], include=["run"], name="task_retry", condition=Q(state="waiting_retry")
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Attempt(GuardedModel):
    """One try of a task by one worker. Numbers are consecutive from 1 within the task."""

    OWNER = "workflows.ledger"
    GUARDED_FIELDS = frozenset({"state", "finished_at", "error_code", "error_message", "reason", "number"})

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="attempt_rows")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=_state_choices(AttemptState))
    worker_id = models.UUIDField(null=True)
    worker_name = models.CharField(max_length=128, db_default="", blank=True)
    dispatch_id = models.UUIDField(null=True)
    generation = models.BigIntegerField(null=True)
    started_at = models.DateTimeField()
    deadline = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=128, db_default="", blank=True)
    error_message = models.TextField(db_default="", blank=True)
    reason = models.CharField(max_length=200, db_default="", blank=True)
    log_bytes = models.PositiveIntegerField(db_default=0)
    log_truncated = models.BooleanField(db_default=False)

    objects = GuardedManager["Attempt"]()

    class Meta:
        constraints: ClassVar = [
            # I4
            UniqueConstraint(fields=["run", "task", "number"], name="attempt_number_unique"),
            UniqueConstraint(
                fields=["run", "task"], condition=Q(state="running"), name="attempt_one_running_per_task"
            ),
            _is_one_of(AttemptState, "attempt_state_known"),
            CheckConstraint(condition=Q(number__gte=1), name="attempt_number_from_1"),
            CheckConstraint(
                condition=Q(state="running", finished_at__isnull=True)
                | (~Q(state="running") & Q(finished_at__isnull=False)),
                name="attempt_running_iff_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"


class AttemptLog(models.Model):
    """One line that an action logged. Kept with its attempt, pruned with its run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="logs")
    at = models.DateTimeField(db_default=Now())
    level = models.CharField(max_length=10)
    text = models.TextField()
    cleaned = models.BooleanField(
        db_default=False, help_text="characters that cannot be stored were replaced"
    )

    class Meta:
        indexes: ClassVar = [Index(fields=["attempt", "id"], name="attempt_log_order")]

    def __str__(self) -> str:
        return self.text[:80]


class StateEvent(GuardedModel):
    """One move, append-only. ``seq`` counts from 1 without a gap within its run."""

    OWNER = "workflows.ledger"
    GUARDED_FIELDS = frozenset(
        {"run", "seq", "at", "entity", "key", "from_state", "to_state", "reason", "actor"}
    )

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    entity = models.CharField(
        max_length=8, choices=[("run", "run"), ("task", "task"), ("attempt", "attempt")]
    )
    key = models.CharField(max_length=150)
    from_state = models.CharField(max_length=20, blank=True)
    to_state = models.CharField(max_length=20)
    reason = models.CharField(max_length=200, blank=True)
    actor = models.CharField(max_length=200, blank=True)

    objects = GuardedManager["StateEvent"]()

    class Meta:
        constraints: ClassVar = [UniqueConstraint(fields=["run", "seq"], name="event_seq_unique")]

    def __str__(self) -> str:
        return f"{self.seq} {self.entity} {self.key} {self.from_state} -> {self.to_state}"


class ReadyQueue(GuardedModel):
    """How many tasks of a class a run has ready, and whether it may have them queued.

    The enqueue pass reads its candidates here, so its cost follows the open classes and not the
    backlog. Written by the ledger's flush; the consistency check recounts it.
    """

    OWNER = "workflows.ledger"
    GUARDED_FIELDS = frozenset({"ready", "open", "turn_at"})

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    task_class = models.ForeignKey(TaskClass, on_delete=models.PROTECT, related_name="+", db_index=False)
    tenant = models.ForeignKey("access.Tenant", on_delete=models.CASCADE, related_name="+", db_index=False)
    ready = models.IntegerField()
    open = models.BooleanField()
    turn_at = models.DateTimeField()

    objects = GuardedManager["ReadyQueue"]()

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["run", "task_class"], name="ready_queue_unique"),
            CheckConstraint(condition=Q(ready__gte=0), name="ready_queue_not_negative"),
        ]
        indexes: ClassVar = [
            # enqueue: candidates of an open class in turn order
            Index(
                fields=["task_class", "turn_at", "run"],
                name="ready_queue_turn",
                condition=Q(open=True, ready__gt=0),
            )
        ]

    def __str__(self) -> str:
        return f"{self.ready} ready of {self.task_class_id}"
