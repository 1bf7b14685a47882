"""The list of duties, and the names under which they are measured."""

from __future__ import annotations

from django.conf import settings

from dispatch.duties import designed_duties
from dispatch.operations.skips import Skips
from observability.metrics import OPERATIONS
from observability.snapshot import SnapshotPublisher


def test_every_duty_of_the_coordinator_has_a_name_in_the_metrics() -> None:
    duties = designed_duties(settings.WORKLOAD, skips=Skips(), publisher=SnapshotPublisher())
    assert {duty.name for duty in duties} <= OPERATIONS
