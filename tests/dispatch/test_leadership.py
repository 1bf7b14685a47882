"""One leader at a time, and nothing written by one that no longer is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import Error, connection, transaction

from dispatch.leadership import Leadership, LeadershipLost, LeadershipRowMissing, Term, leadership_status
from dispatch.models import Leadership as LeadershipRow
from platform_site import wake
from tests.support.races import held_lock, new_session, rival, wait_for
from tests.support.sessions import Actor, actor, end_session

pytestmark = pytest.mark.django_db(transaction=True)

TIMEOUT = timedelta(seconds=3)
SHORT = timedelta(milliseconds=200)


@pytest.fixture
def anna() -> Iterator[Actor]:
    with actor("anna") as someone:
        yield someone


@pytest.fixture
def bert() -> Iterator[Actor]:
    with actor("bert") as someone:
        yield someone


def _contender(name: str, *, timeout: timedelta = TIMEOUT) -> Leadership:
    return Leadership(name, leader_timeout=timeout)


def _acquired(leadership: Leadership, who: Actor) -> Term:
    term = who.does(leadership.try_acquire)
    assert term is not None
    return term


def _write_under(term: Term) -> None:
    with transaction.atomic(durable=True):
        term.check()
        LeadershipRow.objects.filter(id=1).update(holder="written")


def _age_the_beat(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dispatch_leadership SET beat_at = clock_timestamp() - make_interval(secs => %s)",
            [seconds],
        )


def test_of_two_contenders_one_wins(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert")
    assert _acquired(first, anna).epoch == 1
    assert bert.does(second.try_acquire) is None
    status = leadership_status(timeout=TIMEOUT)
    assert (status.holder, status.epoch, status.alive) == ("anna", 1, True)


def test_the_next_takes_over_after_a_release_under_a_later_epoch(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert")
    _acquired(first, anna)
    anna.does(first.release)
    status = leadership_status(timeout=TIMEOUT)
    assert (status.holder, status.beat_at, status.alive) == ("anna", None, False)
    assert _acquired(second, bert).epoch == 2
    row = LeadershipRow.objects.get(id=1)
    assert (row.holder, row.backend_pid) == ("bert", bert.backend_pid())


def test_an_ex_leader_writes_nothing_after_a_later_epoch(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert")
    old = _acquired(first, anna)
    anna.does(lambda: _write_under(old))
    with connection.cursor() as cursor:  # the lock slips from anna's session while anna knows nothing
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [anna.backend_pid()])
    new = _acquired(second, bert)
    anna.does(end_session)  # Django's silent reconnect: anna has a healthy session again
    with pytest.raises(LeadershipLost):
        anna.does(lambda: _write_under(old))
    with pytest.raises(LeadershipLost):
        anna.does(old.beat)
    assert LeadershipRow.objects.get(id=1).holder == "bert"
    bert.does(lambda: _write_under(new))


def test_a_silent_reconnect_is_caught_by_the_process_id_although_the_epoch_is_current(anna: Actor):
    leadership = _contender("anna")
    term = _acquired(leadership, anna)
    anna.does(end_session)
    with pytest.raises(LeadershipLost):
        anna.does(lambda: _write_under(term))
    with pytest.raises(LeadershipLost):
        anna.does(term.beat)
    assert LeadershipRow.objects.get(id=1).holder == "anna"


def test_a_later_epoch_waits_for_the_last_transaction_of_the_earlier_one(anna: Actor):
    """I16: whoever holds the fence has committed or rolled back before the next term begins."""
    _acquired(_contender("anna"), anna)
    anna.does(end_session)
    with (
        held_lock("SELECT 1 FROM dispatch_leadership WHERE id = 1 AND epoch = 1 FOR SHARE") as last_write,
        rival(lambda: _acquired_here("bert")) as bert,
    ):
        bert.wait_until_blocked()
        last_write.release()
        assert bert.result() == 2


def _acquired_here(name: str) -> int:
    term = _contender(name).try_acquire()
    assert term is not None
    return term.epoch


def test_the_fence_refuses_to_stand_outside_a_transaction(anna: Actor):
    term = _acquired(_contender("anna"), anna)
    with pytest.raises(RuntimeError, match="inside a transaction"):
        anna.does(term.check)


def test_a_silent_holder_is_ended_and_followed_at_once(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert", timeout=SHORT)
    _acquired(first, anna)
    followed: list[Term] = []

    def ended() -> bool:
        followed.extend(filter(None, [bert.does(second.try_acquire)]))
        return bool(followed)

    wait_for(ended, "the silent session is ended")
    assert followed[0].epoch == 2
    with pytest.raises(Error):
        anna.does(lambda: Term(epoch=1).beat())
    anna.does(first.release)


def test_a_holder_that_was_heard_of_lately_is_left_alone(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert")
    _acquired(first, anna)
    assert bert.does(second.try_acquire) is None


def test_a_holder_at_work_is_heard_of_by_what_it_does(anna: Actor, bert: Actor):
    """A cancel of many statements beats only at its end; each statement shows that the leader lives."""
    first, second = _contender("anna"), _contender("bert")
    term = _acquired(first, anna)
    _age_the_beat(60)
    anna.does(LeadershipRow.objects.exists)
    assert bert.does(second.try_acquire) is None
    assert anna.does(term.beat) is None


def test_a_holder_whose_statement_does_not_end_is_ended(anna: Actor, bert: Actor):
    first, second = _contender("anna"), _contender("bert", timeout=SHORT)
    _acquired(first, anna)
    with held_lock("SELECT 1 FROM dispatch_leadership FOR UPDATE") as lock:
        with rival(lambda: _stuck(anna)) as stuck:
            followed: list[Term] = []

            def ended() -> bool:
                return bool(bert.does(second._silent_holder_ended))

            wait_for(ended, "the stuck session is ended")
            assert isinstance(stuck.result(), Error)
        lock.release()
        followed.extend(filter(None, [bert.does(second.try_acquire)]))
    assert [term.epoch for term in followed] == [2]
    anna.does(first.release)


def _stuck(anna: Actor) -> Error | None:
    try:
        anna.does(lambda: Term(epoch=1).beat())
    except Error as error:
        return error
    return None


def test_another_session_under_the_same_process_id_is_not_ended(anna: Actor, bert: Actor):
    """The number of an ended session is given out again; only the start time tells the two apart."""
    first, second = _contender("anna"), _contender("bert")
    _acquired(first, anna)
    LeadershipRow.objects.filter(id=1).update(backend_start="2001-01-01T00:00:00Z")
    _age_the_beat(60)
    assert bert.does(second.try_acquire) is None
    assert anna.does(lambda: Term(epoch=1).beat()) is None


def test_the_leader_returns_after_its_session_was_ended(anna: Actor):
    leadership = _contender("anna")
    _acquired(leadership, anna)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [anna.backend_pid()])
    with pytest.raises(Error):
        anna.does(lambda: Term(epoch=1).beat())
    anna.does(leadership.release)
    assert _acquired(leadership, anna).epoch == 2


def test_no_row_is_an_error_and_not_a_win(anna: Actor, bert: Actor):
    """A rule that swallows the insert stands for whatever else could take the row away in between."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM dispatch_leadership")
        cursor.execute("CREATE RULE lost AS ON INSERT TO dispatch_leadership DO INSTEAD NOTHING")
    try:
        leadership = _contender("anna")
        with pytest.raises(LeadershipRowMissing):
            anna.does(leadership.try_acquire)
        assert leadership.term is None
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP RULE lost ON dispatch_leadership")
    assert _acquired(_contender("bert"), bert).epoch == 1  # the lock was not kept by the failed one


def test_nobody_ever_led():
    LeadershipRow.objects.all().delete()
    status = leadership_status(timeout=TIMEOUT)
    assert (status.holder, status.epoch, status.since, status.alive) == ("", 0, None, False)


def test_a_leader_that_went_silent_is_reported_as_not_alive(anna: Actor):
    leadership = _contender("anna")
    _acquired(leadership, anna)
    _age_the_beat(4)
    assert leadership.status.alive is False


class _Interrupt:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def interrupt() -> Iterator[_Interrupt]:
    pipe = _Interrupt()
    yield pipe
    pipe.close()


def test_waiting_ends_with_a_wake_up(anna: Actor, interrupt: _Interrupt):
    leadership = _contender("anna")
    _acquired(leadership, anna)
    with rival(lambda: anna.does(lambda: leadership.wait(10, interrupt=interrupt.reader))) as waiting:
        wake.send(wake.COORDINATOR_CHANNEL)
        assert waiting.result() is True


def test_a_wake_up_that_came_during_a_statement_is_not_overlooked(anna: Actor, interrupt: _Interrupt):
    leadership = _contender("anna")
    term = _acquired(leadership, anna)
    wake.send(wake.COORDINATOR_CHANNEL)
    anna.does(term.beat)  # the driver reads the notification with the answer
    assert anna.does(lambda: leadership.wait(10, interrupt=interrupt.reader)) is True
    assert anna.does(lambda: leadership.wait(0.01, interrupt=interrupt.reader)) is False


def test_waiting_ends_when_interrupted_leading_or_not(anna: Actor, interrupt: _Interrupt):
    leadership = _contender("anna")
    os.write(interrupt.writer, b"x")
    assert anna.does(lambda: leadership.wait(10, interrupt=interrupt.reader)) is False
    _acquired(leadership, anna)
    assert anna.does(lambda: leadership.wait(10, interrupt=interrupt.reader)) is False


def test_a_released_session_ends(anna: Actor):
    leadership = _contender("anna")
    _acquired(leadership, anna)
    pid = anna.backend_pid()
    anna.does(leadership.release)
    with new_session() as observer:
        wait_for(
            lambda: not observer.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall(),
            "the session of the released leader ended",
        )
