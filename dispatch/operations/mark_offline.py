"""Workers not heard from for too long are offline, for good. Reap takes their leases."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from dispatch.leadership import Fence
from dispatch.statements import sql


def mark_offline(*, fence: Fence, offline_after: timedelta) -> int:
    """One guarded UPDATE of worker rows; how many went offline.

    Silence counts only while it could have been broken: from when the control plane last began to answer.
    """
    with transaction.atomic(durable=True):
        fence.check()
        offline = sql.run("mark_offline", offline_after=offline_after)
        if not offline:
            transaction.set_rollback(
                True
            )  # nothing to keep: spares the durable commit, once a second for ever
        return offline
