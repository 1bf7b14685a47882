"""Silence: who is offline, and that it counts only while it could have been broken."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dispatch.leadership import LeadershipLost
from dispatch.models import Liveness
from dispatch.operations.mark_offline import mark_offline
from tests.support.aging import control_plane_there, let_worker_be_silent
from tests.support.platform import OpenFence, ShutFence, a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db

AFTER = timedelta(seconds=15)


def _mark() -> int:
    return mark_offline(fence=OpenFence(), offline_after=AFTER)


def test_a_silent_worker_is_offline_and_one_that_speaks_is_not() -> None:
    control_plane_there()
    silent, speaking = a_worker(), a_worker()
    let_worker_be_silent(silent.identity.id, seconds=16)
    let_worker_be_silent(speaking.identity.id, seconds=14)
    assert _mark() == 1
    assert (silent.state(), speaking.state()) == ("offline", "active")
    assert _mark() == 0


def test_a_draining_worker_can_go_offline_and_a_stopped_one_cannot() -> None:
    control_plane_there()
    draining, stopped = a_worker(), a_worker()
    a_run([a_task("a")])
    queue_all()
    draining.claim()
    draining.drain()
    stopped.drain()
    for worker in (draining, stopped):
        let_worker_be_silent(worker.identity.id, seconds=60)
    assert _mark() == 1
    assert (draining.state(), stopped.state()) == ("offline", "stopped")


def test_silence_counts_from_when_the_control_plane_was_there_again() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=600)
    control_plane_there(since_seconds=14)
    assert _mark() == 0
    control_plane_there(since_seconds=16)
    assert _mark() == 1


def test_nobody_goes_offline_while_the_control_plane_is_away() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=600)
    control_plane_there(since_seconds=605, seen_seconds=600)
    assert _mark() == 0


def test_without_the_row_nobody_goes_offline() -> None:
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=600)
    Liveness.objects.all().delete()
    assert _mark() == 0


def test_a_leader_that_no_longer_leads_marks_nobody() -> None:
    control_plane_there()
    worker = a_worker()
    let_worker_be_silent(worker.identity.id, seconds=60)
    with pytest.raises(LeadershipLost):
        mark_offline(fence=ShutFence(), offline_after=AFTER)
    assert worker.state() == "active"
