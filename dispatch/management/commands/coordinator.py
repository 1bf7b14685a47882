"""``manage.py coordinator``: lead, or stand by to lead. Any number may run; one leads."""

from __future__ import annotations

import os
import socket
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from dispatch.coordinator import Coordinator, Timing
from dispatch.duties import designed_duties
from dispatch.leadership import Leadership
from dispatch.notify_systemd import SystemdNotifier
from dispatch.operations.skips import Skips
from dispatch.stopping import StopRequest
from observability.snapshot import SnapshotPublisher
from platform_site.configuration import PlatformSettings


class Command(BaseCommand):
    help = "Move runs forward: queue what is ready, take back lost leases, retry, cancel. SIGTERM ends it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--name",
            default=f"{socket.gethostname()}:{os.getpid()}",
            help="how this process is called where people read who leads (default: host:pid)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
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


def timing(workload: PlatformSettings) -> Timing:
    """The loop's intervals from the settings: a leader beats three times before it counts as silent."""
    pass_interval = workload.coordinator_pass_ms / 1000
    return Timing(
        pass_interval=pass_interval,
        beat_interval=min(pass_interval, workload.leader_timeout_ms / 3000),
        standby_interval=workload.leader_poll_ms / 1000,
    )
