"""Wake-ups: after the commit, never in it, thinned out and never lost."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from platform_site import wake
from tests.support.races import new_session, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


class Sent:
    """A sender that notes what went out and from which thread."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def __call__(self, _name: str) -> None:
        self.threads.append(threading.current_thread().name)


@pytest.fixture
def sent() -> Sent:
    return Sent()


def _listening(channel: str) -> psycopg.Connection:
    session = new_session("listener")
    session.execute(f"LISTEN {channel}")
    return session


def _arrived(session: psycopg.Connection, *, timeout: float) -> list[tuple[str, str]]:
    return [(each.channel, each.payload) for each in session.notifies(timeout=timeout, stop_after=1)]


@pytest.mark.parametrize(
    ("send", "channel"),
    [
        (wake.coordinator, "workload_coordinator"),
        (lambda: wake.send(wake.WORKERS_CHANNEL), "workload_workers"),
    ],
)
def test_a_wake_up_reaches_its_channel_without_content(send, channel):
    with _listening(channel) as session:
        send()
        assert _arrived(session, timeout=5) == [(channel, "")]


def test_it_goes_after_the_commit(sent):
    channel = wake.Channel("test", sender=sent)
    with transaction.atomic():
        with transaction.atomic():
            channel.wake()
        assert sent.threads == []
    assert len(sent.threads) == 1


def test_it_does_not_go_after_a_rollback(sent):
    channel = wake.Channel("test", sender=sent)
    with transaction.atomic():
        channel.wake()
        transaction.set_rollback(True)
    assert sent.threads == []


def test_sending_inside_a_transaction_is_refused():
    with transaction.atomic(), pytest.raises(RuntimeError, match="never sent inside a transaction"):
        wake.send(wake.WORKERS_CHANNEL)


def test_a_burst_is_one_at_once_and_one_at_the_end(sent):
    channel = wake.Channel("test", sender=sent, spacing=0.05)
    for _ in range(100):
        channel.wake()
    assert sent.threads == [threading.current_thread().name]
    wait_for(lambda: len(sent.threads) == 2, "the one held back went")
    assert sent.threads[1] != sent.threads[0]


def test_what_comes_after_the_spacing_goes_at_once(sent):
    clock = Clock()
    channel = wake.Channel("test", sender=sent, clock=clock)
    channel.wake()
    clock.now += wake.SPACING_SECONDS + 1e-9
    channel.wake()
    assert sent.threads == [threading.current_thread().name] * 2


def test_a_commit_during_the_late_sending_gets_one_of_its_own():
    """The late one is already on its way: its listener may look before this commit."""
    sending, go_on, sent = threading.Event(), threading.Event(), []

    def slow(_name: str) -> None:
        sent.append(threading.current_thread().name)
        if len(sent) == 2:
            sending.set()
            assert go_on.wait(10)

    channel = wake.Channel("test", sender=slow, spacing=0.02)
    channel.wake()
    channel.wake()
    assert sending.wait(10)
    channel.wake()
    go_on.set()
    wait_for(lambda: len(sent) == 3, "the third wake-up went")


def test_a_database_that_is_gone_fails_nobody(caplog):
    def fail(_name: str) -> None:
        raise OperationalError("gone")

    caplog.set_level("DEBUG", logger="platform_site.wake")
    wake.Channel("test", sender=fail).wake()
    assert "was not sent" in caplog.text


def test_other_faults_are_not_hidden():
    def fail(_name: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wake.Channel("test", sender=fail).wake()


def test_the_timers_thread_leaves_no_session_behind():
    names: list[int] = []

    def note(_name: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            names.append(cursor.fetchone()[0])

    channel = wake.Channel("test", sender=note, spacing=0.02)
    channel.wake()
    channel.wake()
    wait_for(lambda: len(names) == 2, "the late one went")
    assert names[0] != names[1]
    with new_session() as observer:
        wait_for(
            lambda: (
                not observer.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [names[1]]).fetchall()
            ),
            "the timer's session ended",
        )
