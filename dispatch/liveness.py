"""Since when the control plane has been there to hear workers: the rule about silence, in one place.

The listener of each web process refreshes one row (``dispatch.wakeup``). Silence of a worker, or of a lease,
counts only while it could have been broken: from ``since`` on, and not while the row itself is out of date.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

GAP_INTERVALS = 1.5
"""Heartbeat intervals without a sign of any web process, after which the control plane counts as gone."""


def liveness_gap(heartbeat_interval: timedelta | None = None) -> timedelta:
    """The longest time between two refreshes that is not an outage."""
    interval = heartbeat_interval or timedelta(milliseconds=settings.WORKLOAD.heartbeat_interval_ms)
    return interval * GAP_INTERVALS
