"""``manage.py coordinator``: lead, or stand by to lead. Any number may run; one leads."""

from __future__ import annotations

import logging
import os
import socket
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DEFAULT_DB_ALIAS, Error, connection
from django.utils.module_loading import import_string

from dispatch.coordinator import Coordinator, Timing
from dispatch.duties import designed_duties
from dispatch.leadership import Leadership
from dispatch.notify_systemd import SystemdNotifier
from dispatch.operations.skips import Skips
from dispatch.stopping import StopRequest
from observability import tracing
from observability.snapshot import SnapshotPublisher
from platform_site.checks import check_session_timeouts
from platform_site.configuration import PlatformSettings

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Move runs forward: queue what is ready, take back lost leases, retry, cancel. SIGTERM ends it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--name",
            default=f"{socket.gethostname()}:{os.getpid()}",
            help="how this process is called where people read who leads (default: host:pid)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        tracing.configure("workload-coordinator", instrument=["psycopg", "requests"])
        warn_of_missing_timeouts()
        workload: PlatformSettings = settings.WORKLOAD
        systemd = SystemdNotifier.from_environment()
        skips, publisher = Skips(), SnapshotPublisher()
        coordinator = Coordinator(
            Leadership(options["name"]),
            designed_duties(workload, skips=skips, publisher=publisher),
            timing=timing(workload),
            begin_pass=skips.begin_pass,
            after_pass=systemd.alive,
            observe=publisher.observe,
            extra_duties=[import_string(path)() for path in settings.COORDINATOR_DUTIES],
        )
        with StopRequest() as stop:
            stop.listen()
            systemd.ready()
            coordinator.run(stop)
            systemd.stopping()


def warn_of_missing_timeouts() -> None:
    """Once at the start, because nobody runs checks against a database that works."""
    try:
        for message in check_session_timeouts(None, databases=[DEFAULT_DB_ALIAS]):
            logger.warning("%s %s", message.msg, message.hint)
    except Error as error:  # the loop waits for a database that is away; here it is no reason not to start
        logger.info("The session's timeouts were not looked at: %s", type(error).__name__)
    finally:
        connection.close()  # leadership begins with a session of its own


def timing(workload: PlatformSettings) -> Timing:
    """The loop's intervals from the settings: a leader beats three times before it counts as silent."""
    pass_interval = workload.coordinator_pass_ms / 1000
    return Timing(
        pass_interval=pass_interval,
        beat_interval=min(pass_interval, workload.leader_timeout_ms / 3000),
        standby_interval=workload.leader_poll_ms / 1000,
    )
