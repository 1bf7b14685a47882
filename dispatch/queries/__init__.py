"""Every read of workers, queue and leadership that pages, API, admin and other apps need.

Functions take keywords only, see one tenant (its own workers and those that serve all), return frozen
dataclasses and issue a fixed number of statements that tests pin.
"""

from dispatch.queries.fleet import (
    Leader,
    WorkerPage,
    WorkerRow,
    leader,
    list_workers,
    worker_detail,
    workers_page,
)
from dispatch.queries.queue import PendingClass, QueueOverview, SlotGroup, queue_overview

__all__ = [
    "Leader",
    "PendingClass",
    "QueueOverview",
    "SlotGroup",
    "WorkerPage",
    "WorkerRow",
    "leader",
    "list_workers",
    "queue_overview",
    "worker_detail",
    "workers_page",
]
