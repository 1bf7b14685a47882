from __future__ import annotations

import psycopg.errors
import pytest
from django.db import OperationalError, connection, transaction

from tests.support.races import held_lock, rival, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

LOCK = "SELECT pg_advisory_xact_lock(%s)"


def _lock(*keys: int) -> str:
    with transaction.atomic(), connection.cursor() as cursor:
        for key in keys:
            cursor.execute(LOCK, [key])
    return "got it"


def test_a_rival_is_provably_blocked_and_goes_on_after_the_release():
    with held_lock(LOCK, [1]) as lock, rival(lambda: _lock(1)) as other:
        other.wait_until_blocked()
        assert other.running
        lock.release()
        assert other.result() == "got it"


def test_a_rival_that_does_not_block_is_named():
    with (
        rival(lambda: _lock(1), name="runner") as other,
        pytest.raises(AssertionError, match=r"runner-\d+ ended instead of waiting"),
    ):
        other.wait_until_blocked()


def test_the_rivals_exception_is_raised_in_the_main_thread():
    def fail() -> None:
        raise ZeroDivisionError("its own")

    with pytest.raises(ZeroDivisionError, match="its own"), rival(fail):
        pass


def test_a_deadlock_is_an_error_within_the_second():
    """The rival holds 2 and wants 1; we hold 1 and want 2. Whoever notices first, nobody hangs."""
    with pytest.raises((OperationalError, psycopg.errors.DeadlockDetected)):
        _deadlock()


def _deadlock() -> None:
    with held_lock(LOCK, [1]) as lock, rival(lambda: _lock(2, 1)) as other:
        other.wait_until_blocked()
        lock.take(LOCK, [2])
        lock.release()
        other.result()


def test_a_wait_that_fails_says_for_what():
    with pytest.raises(AssertionError, match="the moon"):
        wait_for(lambda: False, "the moon is full", timeout=0.02)
