"""Waiting for work: bounded, without a database connection, and no wake-up lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from dispatch.compatibility import Acceptor, ClassFacts
from dispatch.models import Liveness
from dispatch.wakeup import Listener, Waited, Waiters, WorkWakeups, direct_connection
from platform_site import wake
from tests.browser.history import History, TaskFacts
from tests.support.races import Rival, new_session, rival, wait_for
from workflows.kernel.states import RunState, TaskState
from workflows.models import Task

MOCK = Acceptor(kinds=frozenset({"mock"}), tenant_id=None, labels={})
PYTHON = Acceptor(kinds=frozenset({"python"}), tenant_id=None, labels={})
MOCK_CLASS = ClassFacts(id=1, tenant_id=1, executor_kind="mock", requires={})
FAR = 30.0
"""Seconds beyond every deadline of a test: whatever ends a wait sooner was not the clock."""


class Shelf:
    """What claims look for; counts the looks."""

    def __init__(self) -> None:
        self.looks = 0
        self.items: list[str] = []
        self.lock = threading.Lock()

    def look(self) -> list[str]:
        with self.lock:
            self.looks += 1
            return [self.items.pop()] if self.items else []


def _asleep(waiters: Waiters) -> int:
    return sum(waiter.asleep for waiter in list(waiters._seated))


class Waiting:
    """Starts claims that wait, each on its thread, and waits until they sleep."""

    def __init__(self, waiters: Waiters, shelf: Shelf) -> None:
        self.waiters, self.shelf = waiters, shelf
        self.threads: list[Rival[Waited[list[str]]]] = []

    def add(self, acceptor: Acceptor = MOCK, timeout: float = FAR) -> Rival[Waited[list[str]]]:
        number = len(self.threads) + 1

        def wait() -> Waited[list[str]]:
            return self.waiters.wait(self.shelf.look, acceptor=acceptor, timeout=timeout)

        claim = Rival(wait, f"claim-{number}")
        self.threads.append(claim)
        wait_for(lambda: _asleep(self.waiters) == number, f"{number} claims sleep")
        return claim


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    group = Waiting(Waiters(limit=4), Shelf())
    yield group
    group.waiters.close()
    for claim in group.threads:
        claim.result()


@pytest.mark.django_db(transaction=True)
class TestWaiters:
    def test_what_is_there_is_taken_without_waiting(self):
        shelf = Shelf()
        shelf.items.append("work")
        assert Waiters(limit=1).wait(shelf.look, acceptor=MOCK, timeout=FAR) == Waited(["work"])
        assert shelf.looks == 1

    def test_without_wake_up_the_wait_ends_empty_at_its_time(self):
        shelf = Shelf()
        started = time.monotonic()
        assert Waiters(limit=1).wait(shelf.look, acceptor=MOCK, timeout=0.1) == Waited([])
        assert 0.1 <= time.monotonic() - started < 5
        assert shelf.looks == 1

    def test_a_wake_up_makes_a_sleeper_look_again(self, waiting: Waiting):
        claim = waiting.add()
        waiting.shelf.items.append("work")
        waiting.waiters.wake([(MOCK_CLASS, 1)])
        assert claim.result() == Waited(["work"])

    def test_a_wake_up_between_look_and_sleep_is_not_lost(self):
        """The look finds nothing; the work and its wake-up come before the sleep begins."""
        waiters, shelf = Waiters(limit=1), Shelf()

        def look() -> list[str]:
            found = shelf.look()
            if shelf.looks == 1:
                shelf.items.append("work")
                waiters.wake([(MOCK_CLASS, 1)])
            return found

        assert waiters.wait(look, acceptor=MOCK, timeout=FAR) == Waited(["work"])
        assert shelf.looks == 2

    def test_as_many_wake_as_there_is_work_the_longest_waiting_first(self, waiting: Waiting):
        first, second, third = waiting.add(), waiting.add(), waiting.add()
        waiting.shelf.items.extend(["a", "b"])
        waiting.waiters.wake([(MOCK_CLASS, 2)])
        assert {first.result().found[0], second.result().found[0]} == {"a", "b"}
        assert third.running
        assert waiting.shelf.looks == 5

    def test_who_is_on_its_way_counts_for_the_next_wake_up(self, waiting: Waiting):
        """Two notifications for the same single task must not rouse two claims."""
        waiting.add()
        second = waiting.add()
        waiting.shelf.items.append("work")
        with waiting.waiters._lock:  # nobody awakes between the two counts
            real, waiting.waiters._lock = waiting.waiters._lock, threading.RLock()
            waiting.waiters.wake([(MOCK_CLASS, 1)])
            waiting.waiters.wake([(MOCK_CLASS, 1)])
            waiting.waiters._lock = real
        wait_for(lambda: len(waiting.waiters) == 1, "one claim left with the work")
        assert second.running
        assert waiting.shelf.looks == 3

    def test_work_of_another_kind_wakes_nobody(self, waiting: Waiting):
        mock, python = waiting.add(MOCK), waiting.add(PYTHON)
        waiting.shelf.items.append("work")
        waiting.waiters.wake([(MOCK_CLASS, 5)])
        assert mock.result() == Waited(["work"])
        assert python.running

    def test_beyond_the_bound_a_claim_looks_once_and_goes(self, waiting: Waiting):
        for _ in range(4):
            waiting.add()
        started = time.monotonic()
        refused = waiting.waiters.wait(waiting.shelf.look, acceptor=MOCK, timeout=FAR)
        assert refused == Waited([], refused=True)
        assert time.monotonic() - started < 1
        waiting.shelf.items.append("work")
        assert waiting.waiters.wait(waiting.shelf.look, acceptor=MOCK, timeout=FAR).found == ["work"]

    def test_a_place_is_free_again_after_an_exception(self):
        waiters = Waiters(limit=1)

        def fail() -> list[str]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            waiters.wait(fail, acceptor=MOCK, timeout=FAR)
        assert len(waiters) == 0

    def test_closing_lets_everybody_go_now_and_from_now_on(self, waiting: Waiting):
        claims = [waiting.add(), waiting.add()]
        waiting.waiters.close()
        assert [claim.result() for claim in claims] == [Waited([]), Waited([])]
        assert waiting.waiters.wait(waiting.shelf.look, acceptor=MOCK, timeout=FAR).refused

    def test_a_sleeper_holds_no_database_connection(self, waiting: Waiting):
        def pids() -> list[Any]:
            with new_session() as observer:
                return observer.execute(
                    "SELECT pid FROM pg_stat_activity"
                    " WHERE application_name LIKE 'claim-%' AND datname = current_database()"
                ).fetchall()

        waiting.add()
        wait_for(lambda: pids() == [], "the sleeping claim's session ended")


HEARTBEAT = timedelta(seconds=5)


@pytest.fixture
def pending() -> Iterator[Callable[[], None]]:
    """A table in the place of the real query's: the listener counts what a test put there."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test_pending (pending int)")

    def add() -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO test_pending VALUES (1)")

    yield add
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE test_pending")


COUNT = "SELECT 1, 1, 'mock', '{}'::jsonb, count(*) FROM test_pending HAVING count(*) > 0"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, pending: Callable[[], None]) -> Callable[[], None]:
    monkeypatch.setitem(_texts(), "pending_by_class", COUNT)
    return pending


def _texts() -> dict[str, str]:
    from dispatch import wakeup

    assert isinstance(wakeup._sql.texts, dict)
    return wakeup._sql.texts


@pytest.fixture
def start() -> Iterator[Callable[..., WorkWakeups]]:
    running: list[WorkWakeups] = []

    def begin(*, poll_seconds: float, **options: Any) -> WorkWakeups:
        waiters = Waiters(limit=4)
        listener = Listener(waiters, heartbeat_interval=HEARTBEAT, poll_seconds=poll_seconds, **options)
        running.append(WorkWakeups(waiters, listener))
        return running[-1]

    yield begin
    for each in running:
        each.stop()


def _sleeping_claim(wakeups: WorkWakeups, shelf: Shelf) -> Rival[Waited[list[str]]]:
    claim = Rival(lambda: wakeups.wait(shelf.look, acceptor=MOCK, timeout=FAR), "claim")
    wait_for(lambda: _asleep(wakeups._waiters) == 1, "the claim sleeps")
    return claim


def _listens(name: str = "%-listener") -> bool:
    with new_session() as observer:
        return bool(
            observer.execute(
                "SELECT 1 FROM pg_stat_activity"
                " WHERE application_name LIKE %s AND datname = current_database()",
                [name],
            ).fetchall()
        )


@pytest.mark.django_db(transaction=True)
class TestListener:
    def test_a_notification_alone_wakes(self, start, counted):
        """The next look by the clock lies beyond the deadline."""
        wakeups, shelf = start(poll_seconds=FAR), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        wait_for(_settled(wakeups), "the first count is over")
        shelf.items.append("work")
        counted()
        wake.send(wake.WORKERS_CHANNEL)
        assert claim.result() == Waited(["work"])

    def test_the_clock_alone_wakes(self, start, counted):
        """Nothing is sent: a listening session that died must cost a second, not the work."""
        wakeups, shelf = start(poll_seconds=0.2), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        shelf.items.append("work")
        counted()
        assert claim.result() == Waited(["work"])

    def test_a_notification_without_pending_work_wakes_nobody(self, start, counted):
        wakeups, shelf = start(poll_seconds=FAR), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        wait_for(_settled(wakeups), "the first count is over")
        before = wakeups._listener._count_not_before
        wake.send(wake.WORKERS_CHANNEL)
        wait_for(
            lambda: wakeups._listener._count_not_before > before, "the notification was answered by a count"
        )
        assert claim.running
        assert shelf.looks == 1

    def test_the_listener_comes_back_after_its_session_was_ended(self, start, counted):
        wakeups, shelf = start(poll_seconds=FAR), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        wait_for(_settled(wakeups), "the first count is over")
        with new_session() as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name LIKE '%-listener' AND datname = current_database()"
            )
        wait_for(_listens, "the listener has a session again")
        shelf.items.append("work")
        counted()

        def found() -> bool:
            wake.send(wake.WORKERS_CHANNEL)
            return not claim.running

        wait_for(found, "the claim was woken through the new session")
        assert claim.result() == Waited(["work"])

    def test_a_database_that_refuses_is_tried_again(self, start, counted):
        failures = [2]

        def connect() -> psycopg.Connection[Any]:
            if failures[0]:
                failures[0] -= 1
                raise psycopg.OperationalError("not yet")
            return direct_connection()

        wakeups, shelf = start(poll_seconds=0.1, connect=connect), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        shelf.items.append("work")
        counted()
        assert claim.result() == Waited(["work"])

    def test_everybody_goes_when_the_web_process_is_told_to_end(self, start, counted):
        alive = [True]
        wakeups, shelf = start(poll_seconds=FAR), Shelf()
        wakeups.start(alive=lambda: alive[0])
        claim = _sleeping_claim(wakeups, shelf)
        alive[0] = False
        fell = time.monotonic()
        assert claim.result() == Waited([])
        assert time.monotonic() - fell < 1
        wait_for(lambda: not _listens(), "the listener's session ended")

    def test_everybody_goes_at_the_end_even_while_the_database_is_away(self, start):
        alive = [True]

        def connect() -> psycopg.Connection[Any]:
            raise psycopg.OperationalError("away")

        wakeups, shelf = start(poll_seconds=FAR, connect=connect), Shelf()
        wakeups.start(alive=lambda: alive[0])
        claim = _sleeping_claim(wakeups, shelf)
        alive[0] = False
        assert claim.result() == Waited([])

    def test_it_does_not_start_twice(self, start, counted):
        wakeups = start(poll_seconds=FAR)
        wakeups.start()
        thread = wakeups._listener._thread
        wakeups.start()
        assert wakeups._listener._thread is thread


def _settled(wakeups: WorkWakeups) -> Callable[[], bool]:
    return lambda: wakeups._listener._poll_due > time.monotonic()


@pytest.mark.django_db(transaction=True)
class TestLiveness:
    @pytest.fixture(autouse=True)
    def _running(self, start, counted):
        self.start = lambda: start(poll_seconds=FAR).start()

    @staticmethod
    def _last_seen(ago: timedelta) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM dispatch_liveness")
            cursor.execute(
                "INSERT INTO dispatch_liveness (id, since, seen_at)"
                " VALUES (1, clock_timestamp() - interval '1 day', clock_timestamp() - %s::interval)",
                [ago],
            )

    @staticmethod
    def _seen_again() -> Liveness:
        def recent() -> bool:
            with connection.cursor() as cursor:
                cursor.execute("SELECT seen_at > clock_timestamp() - interval '1 s' FROM dispatch_liveness")
                row = cursor.fetchone()
                return bool(row and row[0])

        wait_for(recent, "the listener said that it is there")
        return Liveness.objects.get(id=1)

    def test_the_row_is_made_when_it_is_missing(self):
        Liveness.objects.all().delete()
        self.start()
        row = self._seen_again()
        assert abs(row.since - row.seen_at) < timedelta(seconds=1)

    def test_a_short_gap_does_not_restart_the_time(self):
        self._last_seen(HEARTBEAT * 1.3)
        self.start()
        row = self._seen_again()
        assert row.seen_at - row.since > timedelta(hours=23)

    def test_after_a_long_gap_silence_counts_from_anew(self):
        self._last_seen(HEARTBEAT * 1.6)
        self.start()
        row = self._seen_again()
        assert row.seen_at - row.since < timedelta(seconds=1)


@pytest.mark.django_db(transaction=True)
class TestRealQueue:
    """The listener's own query against real dispatches."""

    @pytest.fixture
    def task(self) -> Task:
        history = History()
        tasks = [TaskFacts("waits", TaskState.QUEUED, kind="mock")]
        run = history.run(history.workflow("pages", tasks), RunState.RUNNING, tasks)
        return Task.objects.get(run=run)

    def test_a_pending_dispatch_wakes_the_claim_that_accepts_it(self, start, task: Task):
        wakeups, shelf = start(poll_seconds=FAR), Shelf()
        claim = _sleeping_claim(wakeups, shelf)
        wait_for(_settled(wakeups), "the first count is over")
        shelf.items.append("work")
        History().pending(task)
        wake.send(wake.WORKERS_CHANNEL)
        assert claim.result() == Waited(["work"])

    def test_the_count_reads_an_index_of_pending_dispatches_alone(self):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {_texts()['pending_by_class']}")
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "dispatch_pending" in plan, plan


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_may_not_wait_starts_nothing(start):
    wakeups, shelf = start(poll_seconds=FAR), Shelf()
    assert wakeups.wait(shelf.look, acceptor=MOCK, timeout=0) == Waited([])
    assert wakeups._listener._thread is None


@pytest.mark.django_db(transaction=True)
def test_two_claims_of_one_process_share_the_places(start, counted):
    wakeups, shelf = start(poll_seconds=FAR), Shelf()
    with rival(lambda: wakeups.wait(shelf.look, acceptor=MOCK, timeout=0.2)) as one:
        assert wakeups.wait(shelf.look, acceptor=MOCK, timeout=0.2) == Waited([])
        assert one.result() == Waited([])
