"""The one row through which the coordinator's measurements reach the web processes' `/metrics`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class MetricsSnapshot(models.Model):
    """The last measurement: who took it is not recorded, when it was taken is (database time)."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    taken_at = models.DateTimeField(db_default=Now())
    data = models.JSONField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="metrics_snapshot_single_row", condition=Q(id=1)),
        ]

    def __str__(self) -> str:
        return f"metrics of {self.taken_at}"
