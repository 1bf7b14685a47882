"""Whether and when a task is tried again: a pure function of policy, attempts, failure, time and chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from workflows.kernel.format import MAX_INTERVAL_MS, RetryPolicy


class FailureKind(StrEnum):
    """How an attempt ended badly."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Try again, not before `at`."""

    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The task has failed; `reason` is permanent_failure, non_retryable or attempts_exhausted."""

    reason: str


def decide(
    policy: RetryPolicy,
    *,
    attempts_used: int,
    failure: FailureKind,
    error_code: str,
    now: datetime,
    random: float,
) -> RetryAt | GiveUp:
    """Decide about a failed attempt.

    `attempts_used` counts the attempts that consumed budget, this one included; attempts that consume
    nothing (released, suspended, interrupted by an outage of the control plane) are not to be asked about.
    `random` is in [0, 1). Never raises, whatever the numbers.
    """
    if failure is FailureKind.PERMANENT:
        return GiveUp("permanent_failure")
    if error_code in policy.non_retryable:
        return GiveUp("non_retryable")
    if attempts_used >= policy.max_attempts:
        return GiveUp("attempts_exhausted")
    return RetryAt(_later(now, delay_ms(policy, attempts_used=attempts_used, random=random)))


def delay_ms(policy: RetryPolicy, *, attempts_used: int, random: float) -> float:
    """Milliseconds to wait after the given number of used attempts, chance included.

    Jitter only shortens: the wait lies in ((1 - jitter) * full, full], so `max_interval_ms` is never passed.
    """
    full = _full_delay_ms(policy, attempts_used)
    chance = random if 0.0 <= random <= 1.0 else 0.0
    return full * (1.0 - policy.jitter * chance)


def _full_delay_ms(policy: RetryPolicy, attempts_used: int) -> float:
    ceiling = MAX_INTERVAL_MS if policy.max_interval_ms is None else policy.max_interval_ms
    interval = min(policy.interval_ms, ceiling)
    steps = max(attempts_used - 1, 0)
    if policy.backoff == "fixed" or interval == 0 or policy.multiplier == 1.0 or steps == 0:
        return float(interval)
    # Compared in logarithms, because the power itself overflows long before the attempts run out; `steps`
    # may be an integer that no float holds, and Python compares such a one exactly.
    steps_to_ceiling = math.log(ceiling / interval) / math.log(policy.multiplier)
    if steps >= steps_to_ceiling:
        return float(ceiling)
    return min(interval * policy.multiplier**steps, float(ceiling))


def _later(now: datetime, milliseconds: float) -> datetime:
    try:
        return now + timedelta(milliseconds=milliseconds)
    except OverflowError:  # the calendar ends with the year 9999
        return datetime.max.replace(tzinfo=now.tzinfo)
