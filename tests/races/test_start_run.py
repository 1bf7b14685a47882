"""Starts that need new task classes at the same time, near the bound of their tenant."""

from __future__ import annotations

from contextlib import AbstractContextManager
from uuid import UUID

from platform_site.access.tenants import default_tenant
from tests.races.holding import raised
from tests.support.platform import a_task, published, started
from tests.support.races import HeldLock, held_lock, rival
from workflows.errors import TooManyTaskClasses
from workflows.models import TaskClass
from workflows.operations.intern_classes import MAX_CLASSES_PER_TENANT


def _room_for_one() -> None:
    TaskClass.objects.bulk_create(
        TaskClass(tenant_id=default_tenant().id, executor_kind=f"k{number}", requires={})
        for number in range(MAX_CLASSES_PER_TENANT - 1)
    )


def _hold_tenant() -> AbstractContextManager[HeldLock]:
    return held_lock("SELECT 1 FROM access_tenant WHERE id = %s FOR NO KEY UPDATE", [default_tenant().id])


def _both(first: str, second: str) -> list[object]:
    """What two starts answer that both found their class missing."""
    with (
        _hold_tenant() as lock,
        rival(raised(lambda: started(first))) as one,
        rival(raised(lambda: started(second))) as other,
    ):
        one.wait_until_blocked()
        other.wait_until_blocked()
        lock.release()
        return [one.result(), other.result()]


def test_two_starts_do_not_pass_the_bound_together() -> None:
    _room_for_one()
    published("x", [a_task("a", requires={"zone": "x"})])
    published("y", [a_task("a", requires={"zone": "y"})])
    answers = _both("x", "y")
    assert {type(answer) for answer in answers} == {UUID, TooManyTaskClasses}
    assert TaskClass.objects.count() == MAX_CLASSES_PER_TENANT


def test_two_starts_that_need_the_same_last_class_share_it() -> None:
    _room_for_one()
    published("x", [a_task("a", requires={"zone": "x"})])
    answers = _both("x", "x")
    assert [type(answer) for answer in answers] == [UUID, UUID]
    assert TaskClass.objects.count() == MAX_CLASSES_PER_TENANT
