"""Silence counts only while it could have been broken: no outage of ours ends a worker's session."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from dispatch.models import Worker
from dispatch.operations.mark_offline import mark_offline
from tests.browser.history import History

pytestmark = pytest.mark.django_db(transaction=True)

HEARTBEAT = timedelta(seconds=5)
OFFLINE_AFTER = 3 * HEARTBEAT


class _Unfenced:
    def check(self) -> None:
        """This test is not about who leads."""

    def beat(self) -> None:
        """Nor who is heard of."""


def _control_plane(*, since: timedelta, seen: timedelta) -> None:
    """It has answered since so long ago, and was last seen so long ago."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM dispatch_liveness")
        cursor.execute(
            "INSERT INTO dispatch_liveness (id, since, seen_at)"
            " VALUES (1, clock_timestamp() - %s::interval, clock_timestamp() - %s::interval)",
            [since, seen],
        )


def _worker(*, silent: timedelta) -> Worker:
    worker = History().worker("w", ["python"], 1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dispatch_worker SET last_heartbeat_at = clock_timestamp() - %s::interval", [silent]
        )
    return worker


@pytest.mark.parametrize(
    ("silent", "since", "seen", "offline"),
    [
        pytest.param(16, 3600, 1, True, id="silent while it was heard out"),
        pytest.param(14, 3600, 1, False, id="not silent for long enough"),
        pytest.param(3600, 14, 1, False, id="the control plane came back just now"),
        pytest.param(3600, 16, 1, True, id="it came back and waited long enough"),
        pytest.param(604, 3600, 600, False, id="the web processes went away, the coordinator did not"),
        pytest.param(620, 3600, 600, True, id="gone before the web processes were"),
    ],
)
def test_when_a_worker_is_offline(silent: int, since: int, seen: int, offline: bool):
    worker = _worker(silent=timedelta(seconds=silent))
    _control_plane(since=timedelta(seconds=since), seen=timedelta(seconds=seen))
    assert mark_offline(fence=_Unfenced(), offline_after=OFFLINE_AFTER) == (1 if offline else 0)
    assert Worker.objects.get(id=worker.id).state == ("offline" if offline else "active")
