"""Schema, constraints and indexes of workers, dispatches and leadership. Operations write them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Func, Index, Q, UniqueConstraint, Value
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from dispatch.states import DispatchState, WorkerState
from platform_site.guarded import GuardedManager, GuardedModel

DIGEST_BYTES = 32


def _next_value(sequence: str) -> Func:
    return Func(Value(sequence), function="nextval", output_field=models.BigIntegerField())


class Worker(GuardedModel):
    """One start of one worker process. The same machine starting again is a new row."""

    OWNER = "dispatch.operations"
    GUARDED_FIELDS = frozenset({"state", "last_heartbeat_at", "stopped_at", "session_digest"})

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    display_name = models.CharField(max_length=128)
    protocol_version = models.PositiveSmallIntegerField()
    executor_kinds = ArrayField(models.CharField(max_length=64), size=16)
    tenant = models.ForeignKey("access.Tenant", null=True, on_delete=models.PROTECT, related_name="+")
    labels = models.JSONField(default=dict)
    max_concurrency = models.PositiveIntegerField()
    drills = models.BooleanField(default=False, help_text="may hang or crash on purpose")
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in WorkerState])
    session_digest = models.BinaryField(max_length=DIGEST_BYTES, unique=True)
    registered_at = models.DateTimeField()
    last_heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)

    objects = GuardedManager["Worker"]()

    class Meta:
        constraints: ClassVar = [
            CheckConstraint(condition=Q(state__in=[s.value for s in WorkerState]), name="worker_state_known"),
            CheckConstraint(
                condition=Q(max_concurrency__gte=1, max_concurrency__lte=1024),
                name="worker_concurrency_range",
            ),
            CheckConstraint(
                condition=Q(state="stopped", stopped_at__isnull=False)
                | (~Q(state="stopped") & Q(stopped_at__isnull=True)),
                name="worker_stopped_iff_time",
            ),
        ]
        indexes: ClassVar = [
            # pools and offline detection look at live workers only
            Index(
                fields=["last_heartbeat_at"],
                name="worker_live",
                condition=Q(state__in=["active", "draining"]),
            ),
            Index(fields=["-registered_at", "-id"], name="worker_newest"),
        ]

    def __str__(self) -> str:
        return self.display_name


class Dispatch(GuardedModel):
    """A ready task on its way to a worker; once claimed, the lease. The heart of the protocol."""

    OWNER = "dispatch.operations"
    GUARDED_FIELDS = frozenset(
        {
            "state",
            "worker",
            "claim_no",
            "attempt_number",
            "generation",
            "renewed_at",
            "lost_at",
            "lease_digest",
        }
        | {"lease_expires_at", "attempt_deadline", "result_digest", "leased_at", "finished_at"}
    )

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    seq = models.BigIntegerField(db_default=_next_value("dispatch_order"), help_text="the order of service")
    run = models.ForeignKey("workflows.Run", on_delete=models.CASCADE, related_name="+", db_index=False)
    task = models.ForeignKey("workflows.Task", on_delete=models.CASCADE, related_name="+")
    task_class = models.ForeignKey(
        "workflows.TaskClass", on_delete=models.PROTECT, related_name="+", db_index=False
    )
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in DispatchState])
    worker = models.ForeignKey(Worker, null=True, on_delete=models.PROTECT, related_name="dispatches")
    claim_no = models.BigIntegerField(null=True)
    attempt_number = models.PositiveIntegerField(null=True)
    generation = models.BigIntegerField(null=True)
    renewed_at = models.DateTimeField(null=True)
    lost_at = models.DateTimeField(null=True, help_text="its claim answer never reached the worker")
    lease_digest = models.BinaryField(max_length=DIGEST_BYTES, null=True)
    lease_expires_at = models.DateTimeField(null=True)
    attempt_deadline = models.DateTimeField(null=True)
    result_digest = models.BinaryField(max_length=DIGEST_BYTES, null=True)
    created_at = models.DateTimeField()
    leased_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    traceparent = models.CharField(max_length=64, db_default="", blank=True)

    objects = GuardedManager["Dispatch"]()

    class Meta:
        verbose_name_plural = "dispatches"
        constraints: ClassVar = [
            # I2: at most one open dispatch per task
            UniqueConstraint(
                fields=["run", "task"], condition=Q(state__in=["pending", "leased"]), name="dispatch_open"
            ),
            CheckConstraint(
                condition=Q(state__in=[s.value for s in DispatchState]), name="dispatch_state_known"
            ),
            # A lease is whole or absent.
            CheckConstraint(
                condition=Q(
                    worker__isnull=True,
                    attempt_number__isnull=True,
                    generation__isnull=True,
                    lease_digest__isnull=True,
                    lease_expires_at__isnull=True,
                    attempt_deadline__isnull=True,
                    leased_at__isnull=True,
                )
                | Q(
                    worker__isnull=False,
                    attempt_number__isnull=False,
                    generation__isnull=False,
                    lease_digest__isnull=False,
                    lease_expires_at__isnull=False,
                    attempt_deadline__isnull=False,
                    leased_at__isnull=False,
                ),
                name="dispatch_lease_whole",
            ),
            CheckConstraint(
                condition=Q(state="pending", worker__isnull=True, finished_at__isnull=True)
                | Q(state="leased", worker__isnull=False, finished_at__isnull=True)
                | Q(
                    state__in=["completed", "expired", "released"],
                    worker__isnull=False,
                    finished_at__isnull=False,
                )
                | Q(state="canceled", finished_at__isnull=False),
                name="dispatch_state_shape",
            ),
            CheckConstraint(
                condition=Q(state="completed", result_digest__isnull=False)
                | (~Q(state="completed") & Q(result_digest__isnull=True)),
                name="dispatch_completed_iff_result",
            ),
            CheckConstraint(
                condition=Q(lease_expires_at__isnull=True)
                | Q(attempt_deadline__gte=models.F("lease_expires_at")),
                name="dispatch_lease_within_attempt",
            ),
            # I8: one generation, one lease
            UniqueConstraint(
                fields=["run", "generation"],
                condition=Q(generation__isnull=False),
                name="dispatch_generation_unique",
            ),
        ]
        indexes: ClassVar = [
            # claim: the first pending of a class; class counts
            Index(
                fields=["task_class", "seq"],
                include=["run"],
                name="dispatch_pending",
                condition=Q(state="pending"),
            ),
            # claim: the pending ones of a locked run; cancel
            Index(
                fields=["run", "seq"],
                include=["task_class"],
                name="dispatch_pending_run",
                condition=Q(state="pending"),
            ),
            # reap: run out, and lost on their way
            Index(fields=["lease_expires_at"], name="dispatch_leased_exp", condition=Q(state="leased")),
            Index(
                fields=["lost_at"], name="dispatch_lost", condition=Q(state="leased", lost_at__isnull=False)
            ),
            # leases of a worker
            Index(fields=["worker"], name="dispatch_leased_wrk", condition=Q(state="leased")),
            # a lost claim answer
            Index(
                fields=["worker", "claim_no"], name="dispatch_claim_no", condition=Q(claim_no__isnull=False)
            ),
            # history of a run
            Index(fields=["run", "task"], name="dispatch_of_run"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Leadership(models.Model):
    """One row: who coordinates. Every transaction of a leader checks it first."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    epoch = models.BigIntegerField(default=0)
    backend_pid = models.IntegerField(null=True)
    backend_start = models.DateTimeField(null=True)
    holder = models.CharField(max_length=200, default="", blank=True)
    since = models.DateTimeField(null=True)
    beat_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "leadership"
        constraints: ClassVar = [CheckConstraint(condition=Q(id=1), name="leadership_single_row")]

    def __str__(self) -> str:
        return f"epoch {self.epoch}"


class Liveness(models.Model):
    """One row: since when the control plane has been answering without a break."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "liveness"
        constraints: ClassVar = [CheckConstraint(condition=Q(id=1), name="liveness_single_row")]

    def __str__(self) -> str:
        return f"since {self.since}"
