from __future__ import annotations

import threading
import time

import pytest

from observability.faults import NO_FAULTS, PLACES, Fault, FaultPlan


def test_faults_strike_in_order_and_then_no_more() -> None:
    plan = FaultPlan(
        {"claim": [Fault(error=ValueError("one"), times=2), Fault(), Fault(error=KeyError("two"))]}
    )
    for expected in (ValueError, ValueError):
        with pytest.raises(expected):
            plan.strike("claim")
    plan.strike("claim")
    assert plan.left("claim") == 1
    with pytest.raises(KeyError):
        plan.strike("claim")
    plan.strike("claim")
    plan.strike("complete")


def test_a_delay_ends_when_the_caller_is_cancelled() -> None:
    cancelled = threading.Event()
    cancelled.set()
    began = time.monotonic()
    FaultPlan({"heartbeat": [Fault(delay_seconds=60)]}).strike("heartbeat", cancelled=cancelled)
    assert time.monotonic() - began < 5


def test_closing_ends_what_waits_and_what_is_left() -> None:
    plan = FaultPlan({"claim": [Fault(delay_seconds=60), Fault(error=ValueError("left"))]})
    thread = threading.Thread(target=plan.strike, args=["claim"])
    thread.start()
    plan.close()
    thread.join(timeout=5)
    assert not thread.is_alive()
    plan.strike("claim")


def test_nothing_strikes_by_default() -> None:
    for place in PLACES:
        NO_FAULTS.strike(place)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        FaultPlan({"nowhere": [Fault()]})
    with pytest.raises(ValueError, match="nowhere"):
        NO_FAULTS.strike("nowhere")
    with pytest.raises(ValueError, match="at least once"):
        Fault(times=0)
