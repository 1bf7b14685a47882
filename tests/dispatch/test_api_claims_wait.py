"""Claims that wait: they hold no connection, hear of work, and are bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections

from dispatch.api import views
from dispatch.wakeup import Listener, Waiters, WorkWakeups
from tests.platform_site.waiting import wait_until
from tests.support.http import WorkerApi
from tests.support.platform import a_run, a_task, queue_all

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Waiters]]:
    """Gives the process so many places to wait in."""
    made: list[WorkWakeups] = []

    def give(number: int) -> Waiters:
        waiters = Waiters(number)
        listener = Listener(waiters, heartbeat_interval=timedelta(seconds=5), poll_seconds=0.05)
        made.append(WorkWakeups(waiters, listener))
        monkeypatch.setattr(views, "process_wakeups", lambda: made[-1])
        return waiters

    yield give
    for wakeups in made:
        wakeups.stop()


def when_asleep(waiters: Waiters, then: Callable[[], None]) -> threading.Thread:
    """Do something on another thread as soon as somebody waits."""

    def run() -> None:
        try:
            wait_until(lambda: any(waiter.asleep for waiter in waiters._seated))
            then()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_claim_waits_without_a_connection_until_there_is_work(
    places: Callable[[int], Waiters],
) -> None:
    waiters = places(1)
    worker = WorkerApi()
    claiming = connections["default"]
    seen: list[Any] = []

    def bring_work() -> None:
        seen.append(claiming.connection)
        a_run([a_task("late")])
        queue_all()

    thread = when_asleep(waiters, bring_work)
    answer = worker.claim(wait_ms=20_000, claim_no=1)
    thread.join()
    assert seen == [None]
    assert [lease["task_key"] for lease in answer.json["leases"]] == ["late"]
    assert 0 < answer.json["waited_ms"] < 20_000
    again = worker.claim(wait_ms=20_000, claim_no=1)
    assert again.json["leases"][0]["lease_token"] == answer.json["leases"][0]["lease_token"]
    assert again.json["waited_ms"] < answer.json["waited_ms"] + 1_000


def test_a_wait_ends_with_its_time(places: Callable[[int], Waiters]) -> None:
    places(1)
    answer = WorkerApi().claim(wait_ms=50)
    assert answer.json["leases"] == []
    assert "retry_after_ms" not in answer.json


def test_without_a_place_to_wait_the_answer_comes_at_once(places: Callable[[int], Waiters]) -> None:
    places(0)
    answer = WorkerApi().claim(wait_ms=20_000)
    assert (answer.json["leases"], answer.json["retry_after_ms"]) == ([], views.NO_PLACE_RETRY_MS)
    assert answer.json["waited_ms"] < 5_000


def test_the_setting_bounds_the_wait(places: Callable[[int], Waiters], settings: Any) -> None:
    places(1)
    settings.WORKLOAD = replace(settings.WORKLOAD, claim_wait_max_ms=20)
    assert WorkerApi().claim(wait_ms=60_000).json["waited_ms"] < 5_000


def test_a_worker_that_drains_while_it_waits_is_told_of_it(places: Callable[[int], Waiters]) -> None:
    waiters = places(1)
    worker = WorkerApi()
    other = WorkerApi()
    a_run([a_task("held"), a_task("late")], concurrency=1)
    queue_all()
    (held,) = worker.leases()

    def drain_and_bring_work() -> None:
        worker.post("drain")
        other.post("heartbeat", {"leases": [], "answered_through": 0})
        a_run([a_task("new")], name="another")
        queue_all()

    thread = when_asleep(waiters, drain_and_bring_work)
    answer = worker.claim(wait_ms=20_000)
    thread.join()
    assert (answer.status, answer.code) == (409, "worker_draining")
    assert worker.complete(held).json == {"outcome": "applied"}
