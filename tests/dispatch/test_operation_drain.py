"""Draining: finish what is held, take nothing more, stop when nothing is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from dispatch.errors import WorkerNotFound
from dispatch.leadership import LeadershipLost
from dispatch.operations.drain import drain, stop_drained
from dispatch.operations.mark_offline import mark_offline
from tests.support.aging import control_plane_there, let_worker_be_silent
from tests.support.facts import the_worker
from tests.support.platform import OpenFence, ShutFence, a_run, a_task, a_worker, queue_all

pytestmark = pytest.mark.django_db


def test_a_worker_that_holds_nothing_stops_at_once() -> None:
    worker = a_worker()
    assert worker.drain() == "stopped"
    assert the_worker(worker.identity.id).stopped_at is not None


def test_a_worker_that_holds_something_drains_and_a_repeat_changes_nothing() -> None:
    worker = a_worker()
    a_run([a_task("a")])
    queue_all()
    leases = worker.claim().leases
    assert worker.drain() == "draining"
    assert worker.drain() == "draining"
    worker.complete(leases)
    stopped_at = the_worker(worker.identity.id).stopped_at
    assert worker.drain() == "stopped"
    assert the_worker(worker.identity.id).stopped_at == stopped_at is not None


def test_an_offline_worker_stays_offline() -> None:
    worker = a_worker()
    control_plane_there()
    let_worker_be_silent(worker.identity.id, seconds=60)
    mark_offline(fence=OpenFence(), offline_after=timedelta(seconds=15))
    assert worker.drain() == "offline"


def test_an_unknown_worker_is_not_found() -> None:
    with pytest.raises(WorkerNotFound):
        drain(worker_id=uuid7())


def test_a_pass_stops_what_a_completion_left_draining(monkeypatch: pytest.MonkeyPatch) -> None:
    idle, busy, active = a_worker(), a_worker(), a_worker()
    a_run([a_task("a"), a_task("b")])
    queue_all()
    leases = idle.claim(1).leases
    busy.claim(1)
    idle.drain()
    busy.drain()
    # A completion that read the worker before its drain committed stops nobody.
    monkeypatch.setattr("dispatch.operations.complete.stop_if_drained", lambda _rows, **_: None)
    idle.complete(leases)
    assert idle.state() == "draining"
    with pytest.raises(LeadershipLost):
        stop_drained(fence=ShutFence())
    assert stop_drained(fence=OpenFence()) == 1
    assert (idle.state(), busy.state(), active.state()) == ("stopped", "draining", "active")
    assert stop_drained(fence=OpenFence()) == 0
