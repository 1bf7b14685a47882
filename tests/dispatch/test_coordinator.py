"""The loop: who does what, in which order, when again, and what trouble does to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from dispatch.coordinator import TROUBLE_PAUSES, Coordinator, Duty, Timing
from dispatch.leadership import Fence, Leadership
from dispatch.models import Leadership as LeadershipRow
from dispatch.stopping import StopRequest
from platform_site import wake
from platform_site.pause import Pause
from tests.support.races import new_session, rival, wait_for
from tests.support.sessions import actor, end_session

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Steps:
    """Duties that write down that they ran, and change as much as the test says."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.changes: dict[str, list[int]] = {}
        self.before: dict[str, Callable[[Fence], None]] = {}

    def duty(
        self, name: str, *, on_wake: bool = False, wakes_workers: bool = False, spacing: float = 0.0
    ) -> Duty:
        def run(fence: Fence) -> int:
            self.ran.append(name)
            self.before.get(name, lambda _fence: None)(fence)
            with transaction.atomic(durable=True):
                fence.check()
            left = self.changes.get(name, [])
            return left.pop(0) if left else 0

        return Duty(name=name, run=run, on_wake=on_wake, wakes_workers=wakes_workers, spacing=spacing)

    def taken(self) -> list[str]:
        ran, self.ran = self.ran, []
        return ran


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def leadership() -> Iterator[Leadership]:
    contender = Leadership("test", leader_timeout=timedelta(seconds=3))
    yield contender
    contender.release()


@pytest.fixture
def coordinator(leadership: Leadership, steps: Steps, clock: Clock) -> Coordinator:
    duties = (
        steps.duty("cancel", on_wake=True),
        steps.duty("reap"),
        steps.duty("queue", on_wake=True, wakes_workers=True),
    )
    return Coordinator(leadership, duties, clock=clock)


def _lead(coordinator: Coordinator) -> None:
    assert coordinator.run_once() == Pause.none()
    assert coordinator.leading


def test_winning_is_followed_at_once_by_a_full_pass_in_order(coordinator: Coordinator, steps: Steps):
    _lead(coordinator)
    assert steps.taken() == []
    assert coordinator.run_once() == Pause(1.0)
    assert steps.taken() == ["cancel", "reap", "queue"]


def test_a_standby_tries_every_quarter_second_and_does_nothing_else(coordinator: Coordinator, steps: Steps):
    with actor("leader") as someone:
        assert someone.does(Leadership("leader", leader_timeout=timedelta(seconds=3)).try_acquire) is not None
        assert coordinator.run_once() == Pause(0.25)
        assert not coordinator.leading
        assert steps.taken() == []
    assert coordinator.run_once() == Pause.none()


def test_between_periodic_passes_nothing_runs_unless_woken(
    coordinator: Coordinator, steps: Steps, clock: Clock
):
    _lead(coordinator)
    coordinator.run_once()
    steps.taken()
    clock.now += 0.4
    assert coordinator.run_once().seconds == pytest.approx(0.6)
    assert steps.taken() == []
    clock.now += 0.6
    coordinator.run_once()
    assert steps.taken() == ["cancel", "reap", "queue"]


def test_a_duty_goes_on_while_it_changes_something_and_those_behind_it_find_that_in_the_same_pass(
    coordinator: Coordinator, steps: Steps
):
    steps.changes["reap"] = [500, 3]
    _lead(coordinator)
    assert coordinator.run_once() == Pause(1.0)
    assert steps.taken() == ["cancel", "reap", "reap", "reap", "queue"]
    coordinator.run_once()
    assert steps.taken() == []


def test_a_duty_that_never_ends_leaves_the_loop_after_its_second(
    coordinator: Coordinator, steps: Steps, clock: Clock
):
    steps.changes["reap"] = [1] * 1000

    def take_time(_fence: Fence) -> None:
        clock.now += 0.3

    steps.before["reap"] = take_time
    _lead(coordinator)
    assert coordinator.run_once() == Pause.none()
    assert steps.taken() == ["cancel", *["reap"] * 4, "queue"]
    coordinator.run_once()
    assert steps.taken()[:1] == ["cancel"], "what time cut short goes on at once"


def test_the_leader_beats_during_a_long_pass(coordinator: Coordinator, steps: Steps, clock: Clock):
    _lead(coordinator)
    seen = []

    def slow(_fence: Fence) -> None:
        clock.now += 1.1
        seen.append(LeadershipRow.objects.values_list("beat_at", flat=True).get())

    for name in ("cancel", "reap", "queue"):
        steps.before[name] = slow
    coordinator.run_once()
    assert len(set(seen)) == 3


def test_a_fault_in_one_duty_stops_no_other_and_is_left_out_until_the_next_interval(
    coordinator: Coordinator, steps: Steps, clock: Clock, caplog: pytest.LogCaptureFixture
):
    def fail(_fence: Fence) -> None:
        raise ZeroDivisionError("poison")

    steps.before["cancel"] = fail
    steps.changes["reap"] = [1]
    _lead(coordinator)
    coordinator.run_once()
    coordinator.run_once()
    assert steps.taken() == ["cancel", "reap", "reap", "queue"]
    assert coordinator.failures == {"cancel": 1}
    assert "poison" in caplog.text
    clock.now += 1.0
    coordinator.run_once()
    assert coordinator.failures == {"cancel": 2}
    assert coordinator.leading


def test_a_database_error_of_the_duty_itself_does_not_depose_a_leader_whose_session_works(
    coordinator: Coordinator, steps: Steps
):
    def fail(_fence: Fence) -> None:
        raise IntegrityError("a poisoned row")

    steps.before["cancel"] = fail
    _lead(coordinator)
    coordinator.run_once()
    assert steps.taken() == ["cancel", "reap", "queue"]
    assert coordinator.leading


def _end_own_session(_fence: Fence) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    with new_session() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_the_end_of_the_session_is_a_step_down_and_the_next_try_leads_again(
    coordinator: Coordinator, steps: Steps
):
    steps.before["reap"] = _end_own_session
    _lead(coordinator)
    assert coordinator.run_once() == Pause(TROUBLE_PAUSES[0])
    assert not coordinator.leading
    assert steps.taken() == ["cancel", "reap"]
    steps.before.clear()
    _lead(coordinator)
    coordinator.run_once()
    assert steps.taken() == ["cancel", "reap", "queue"]
    assert LeadershipRow.objects.get(id=1).epoch == 2


def test_a_silent_reconnect_is_a_step_down(coordinator: Coordinator, steps: Steps):
    steps.before["reap"] = lambda _fence: end_session()
    _lead(coordinator)
    coordinator.run_once()
    assert not coordinator.leading
    assert steps.taken() == ["cancel", "reap"]


def test_a_database_that_stays_away_is_tried_ever_more_slowly_and_logged_once(
    coordinator: Coordinator, leadership: Leadership, monkeypatch, caplog: pytest.LogCaptureFixture
):
    end_session()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    pauses = [coordinator.run_once().seconds for _ in range(5)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0]
    assert caplog.text.count("goes on trying") == 1
    monkeypatch.undo()
    _lead(coordinator)


def test_work_for_workers_is_announced_right_after_its_commit_and_then_at_most_every_5_ms(
    coordinator: Coordinator, steps: Steps, clock: Clock
):
    steps.changes["queue"] = [10, 10]
    with new_session("listener") as listener:
        listener.execute(f"LISTEN {wake.WORKERS_CHANNEL}")
        _lead(coordinator)
        coordinator.run_once()
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
        assert coordinator.run_once().seconds == pytest.approx(wake.SPACING_SECONDS)
        assert list(listener.notifies(timeout=0)) == []
        clock.now += wake.SPACING_SECONDS + 1e-9
        coordinator.run_once()
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1


def test_a_spaced_duty_runs_no_oftener_than_it_says(leadership: Leadership, steps: Steps, clock: Clock):
    duties = (steps.duty("snapshot", spacing=1.0), steps.duty("reap"))
    coordinator = Coordinator(leadership, duties, clock=clock, timing=Timing(pass_interval=0.1))
    _lead(coordinator)
    for _ in range(20):
        coordinator.run_once()
        clock.now += 0.1
    ran = steps.taken()
    assert (ran.count("snapshot"), ran.count("reap")) == (2, 20)


def test_every_pass_is_announced_and_every_duty_observed(leadership: Leadership, steps: Steps, clock: Clock):
    passes, observed = [], []
    coordinator = Coordinator(
        leadership,
        (steps.duty("queue"), steps.duty("reap")),
        clock=clock,
        begin_pass=lambda: passes.append(1),
        observe=lambda *what: observed.append(what[:2]),
    )
    steps.changes["queue"] = [1]
    _lead(coordinator)
    coordinator.run_once()
    assert len(passes) == 1
    assert observed == [("queue", "success"), ("reap", "empty")]


class _Extra:
    def __init__(self, *pauses: float | Exception) -> None:
        self.left = list(pauses)
        self.calls = 0

    def run_once(self) -> Pause:
        self.calls += 1
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Pause(answer)


def test_further_duties_run_when_they_asked_to_and_their_faults_are_their_own(
    leadership: Leadership, steps: Steps, clock: Clock
):
    calm, faulty = _Extra(0.5, 60), _Extra(ZeroDivisionError("theirs"), 60)
    coordinator = Coordinator(leadership, (steps.duty("queue"),), clock=clock, extra_duties=(calm, faulty))
    _lead(coordinator)
    assert coordinator.run_once().seconds == pytest.approx(0.5)
    assert (calm.calls, faulty.calls) == (1, 1)
    coordinator.run_once()
    assert (calm.calls, faulty.calls) == (1, 1)
    clock.now += 1
    coordinator.run_once()
    assert (calm.calls, faulty.calls) == (2, 2)
    assert coordinator.failures == {"_Extra": 1}


def test_a_wake_up_brings_the_quick_duties_and_a_stop_ends_the_wait(steps: Steps):
    """The periodic pass lies beyond every deadline here: only the wake-up can bring the second one."""
    reached, stop = threading.Event(), StopRequest()
    timing = Timing(pass_interval=60, beat_interval=1)
    duties = (steps.duty("reap"), steps.duty("queue", on_wake=True))

    def note(_fence: Fence) -> None:
        if steps.ran.count("queue") == 2:
            reached.set()

    steps.before["queue"] = note

    def run() -> None:
        Coordinator(Leadership("loop", leader_timeout=timedelta(seconds=3)), duties, timing=timing).run(stop)

    with stop, rival(run) as loop:
        wait_for(lambda: steps.ran.count("queue") == 1, "the first pass is over")
        wake.coordinator()
        assert reached.wait(5)
        stop.request()
        asked = time.monotonic()
        loop.result()
        assert time.monotonic() - asked < 1
    assert steps.ran == ["reap", "queue", "queue"]
    row = LeadershipRow.objects.get(id=1)
    assert row.beat_at is None


def test_the_loop_survives_the_end_of_its_session_while_it_waits(steps: Steps):
    stop = StopRequest()
    duties = (steps.duty("queue"),)

    def run() -> None:
        Coordinator(Leadership("loop", leader_timeout=timedelta(seconds=3)), duties).run(stop)

    def epoch() -> int:
        return LeadershipRow.objects.values_list("epoch", flat=True).filter(id=1).first() or 0

    with stop, rival(run) as loop:
        wait_for(lambda: steps.ran, "the first pass")
        with new_session() as other:
            other.execute("SELECT pg_terminate_backend(backend_pid, 5000) FROM dispatch_leadership")
        wait_for(lambda: epoch() == 2, "the loop leads again")
        stop.request()
        loop.result()
