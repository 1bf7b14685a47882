"""What a leader does, in the order in which one duty feeds the next: end, take back, make ready, queue."""

from __future__ import annotations

from datetime import timedelta

from dispatch.coordinator import Duty
from dispatch.leadership import Fence
from dispatch.operations.converge_cancellations import converge_cancellations
from dispatch.operations.drain import stop_drained
from dispatch.operations.mark_offline import mark_offline
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.reap import reap
from dispatch.operations.requeue_orphans import requeue_orphans
from dispatch.operations.skips import Skips
from dispatch.snapshot import take_snapshot
from observability.snapshot import SnapshotPublisher
from platform_site.configuration import PlatformSettings

SNAPSHOT_SPACING_SECONDS = 1.0


def designed_duties(
    settings: PlatformSettings, *, skips: Skips, publisher: SnapshotPublisher
) -> tuple[Duty, ...]:
    """The duties of a pass. Those that a wake-up may announce also run between the periodic passes."""
    offline_after = timedelta(milliseconds=settings.offline_after_ms)

    def take_back(fence: Fence) -> int:
        ended = reap(fence=fence, skips=skips)
        publisher.count_lease_expirations(ended)
        return ended

    def snapshot(_fence: Fence) -> int:
        publisher.publish(take_snapshot())
        return 0

    return (
        Duty(
            name="converge_cancellations",
            run=lambda fence: converge_cancellations(fence=fence, skips=skips),
            on_wake=True,
        ),
        Duty(name="mark_offline", run=lambda fence: mark_offline(fence=fence, offline_after=offline_after)),
        Duty(name="stop_drained", run=lambda fence: stop_drained(fence=fence)),
        Duty(name="reap", run=take_back),
        Duty(name="requeue_orphans", run=lambda fence: requeue_orphans(fence=fence, skips=skips)),
        Duty(
            name="promote_retries", run=lambda fence: promote_retries(fence=fence, skips=skips), on_wake=True
        ),
        Duty(
            name="queue_ready",
            run=lambda fence: queue_ready(fence=fence, dispatch_limit=settings.dispatch_limit, skips=skips),
            on_wake=True,
            wakes_workers=True,
        ),
        Duty(name="snapshot", run=snapshot, spacing=SNAPSHOT_SPACING_SECONDS),
    )
