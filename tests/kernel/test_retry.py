"""Retry decisions: the budget, the curve, and numbers of any size."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.kernel.format import MAX_ATTEMPTS, MAX_INTERVAL_MS, RetryPolicy
from workflows.kernel.retry import FailureKind, GiveUp, RetryAt, decide, delay_ms

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RETRIABLE = [FailureKind.TEMPORARY, FailureKind.TIMED_OUT, FailureKind.INTERRUPTED]


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    interval = draw(st.integers(0, MAX_INTERVAL_MS) | st.integers(0, 2_000))
    return RetryPolicy(
        max_attempts=draw(st.integers(0, MAX_ATTEMPTS)),
        interval_ms=interval,
        backoff=draw(st.sampled_from(["fixed", "exponential"])),
        multiplier=draw(st.floats(1.0, 1_000.0)),
        max_interval_ms=draw(st.none() | st.integers(interval, MAX_INTERVAL_MS)),
        jitter=draw(st.floats(0.0, 1.0)),
    )


def settle(policy: RetryPolicy, attempts_used: int = 1, **changes: Any) -> RetryAt | GiveUp:
    facts: dict[str, Any] = {
        "failure": FailureKind.TEMPORARY,
        "error_code": "busy",
        "now": NOW,
        "random": 0.0,
    }
    return decide(policy, attempts_used=attempts_used, **(facts | changes))


@pytest.mark.parametrize("failure", RETRIABLE)
def test_the_budget_counts_temporary_failures_timeouts_and_interruptions(failure: FailureKind) -> None:
    policy = RetryPolicy(max_attempts=3)
    answers = [settle(policy, used, failure=failure) for used in (1, 2, 3, 4)]
    exhausted = GiveUp("attempts_exhausted")
    assert answers == [RetryAt(NOW), RetryAt(NOW), exhausted, exhausted]


def test_a_permanent_failure_never_retries() -> None:
    assert settle(RetryPolicy(max_attempts=9), failure=FailureKind.PERMANENT) == GiveUp("permanent_failure")


@pytest.mark.parametrize("failure", RETRIABLE)
def test_a_code_that_is_not_retryable_ends_the_task(failure: FailureKind) -> None:
    policy = RetryPolicy(max_attempts=9, non_retryable=("quota", "timeout"))
    assert settle(policy, failure=failure, error_code="quota") == GiveUp("non_retryable")
    assert settle(policy, failure=failure, error_code="quotas") == RetryAt(NOW)


@pytest.mark.parametrize("attempts", [0, 1])
def test_no_attempts_means_one(attempts: int) -> None:
    policy = RetryPolicy(max_attempts=attempts)
    assert policy.max_attempts == 1
    assert settle(policy) == GiveUp("attempts_exhausted")


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        ({"interval_ms": 250}, [250, 250, 250, 250]),
        ({"interval_ms": 100, "backoff": "exponential"}, [100, 200, 400, 800]),
        ({"interval_ms": 100, "backoff": "exponential", "multiplier": 1.5}, [100, 150, 225, 337.5]),
        ({"interval_ms": 100, "backoff": "exponential", "max_interval_ms": 350}, [100, 200, 350, 350]),
        ({"interval_ms": 100, "backoff": "exponential", "multiplier": 1}, [100, 100, 100, 100]),
        ({"interval_ms": 0, "backoff": "exponential"}, [0, 0, 0, 0]),
        ({"interval_ms": 500, "max_interval_ms": 500}, [500, 500, 500, 500]),
    ],
)
def test_the_curve_of_the_intervals(policy: dict[str, Any], delays: list[float]) -> None:
    made = RetryPolicy(max_attempts=10, **policy)
    for used, milliseconds in enumerate(delays, start=1):
        assert delay_ms(made, attempts_used=used, random=0.0) == pytest.approx(milliseconds)
        assert settle(made, used) == RetryAt(NOW + timedelta(milliseconds=milliseconds))


def test_jitter_takes_a_share_away_and_never_adds() -> None:
    policy = RetryPolicy(max_attempts=2, interval_ms=1_000, jitter=0.4)
    assert [delay_ms(policy, attempts_used=1, random=chance) for chance in (0.0, 0.5, 1.0)] == [
        1_000,
        800,
        600,
    ]


@given(policies(), st.integers(1, 1_200))
def test_intervals_never_shrink_from_attempt_to_attempt(policy: RetryPolicy, used: int) -> None:
    first, second = (delay_ms(policy, attempts_used=number, random=0.0) for number in (used, used + 1))
    assert first <= second or math.isclose(first, second)


@given(policies(), st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_intervals_stay_within_their_bounds(policy: RetryPolicy, used: int, random: float) -> None:
    full = delay_ms(policy, attempts_used=used, random=0.0)
    ceiling = MAX_INTERVAL_MS if policy.max_interval_ms is None else policy.max_interval_ms
    assert policy.interval_ms <= full <= ceiling
    drawn = delay_ms(policy, attempts_used=used, random=random)
    assert full * (1 - policy.jitter) - 1e-6 <= drawn <= full


@given(
    policies(),
    st.integers() | st.sampled_from([10**6, 10**400, -(10**400)]),
    st.sampled_from(FailureKind),
    st.floats(),
    st.datetimes(timezones=st.just(UTC)),
)
def test_no_number_makes_it_raise(
    policy: RetryPolicy, used: int, failure: FailureKind, random: float, now: datetime
) -> None:
    answer = settle(policy, used, failure=failure, random=random, now=now)
    if isinstance(answer, RetryAt):
        assert now <= answer.at
        assert answer.at.tzinfo is UTC
        assert used < policy.max_attempts
        assert failure is not FailureKind.PERMANENT
    else:
        assert answer.reason in {"permanent_failure", "attempts_exhausted"}


@pytest.mark.parametrize("used", [10**3, 10**6, 10**18, 10**400])
def test_the_power_is_never_computed_beyond_the_ceiling(used: int) -> None:
    policy = RetryPolicy(max_attempts=2, interval_ms=1, backoff="exponential", multiplier=1_000)
    assert delay_ms(policy, attempts_used=used, random=0.0) == MAX_INTERVAL_MS


def test_the_last_day_of_the_calendar_is_not_passed() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    policy = RetryPolicy(max_attempts=2, interval_ms=60_000)
    assert settle(policy, now=end - timedelta(seconds=1)) == RetryAt(end)
