"""gunicorn: a few processes of many threads, because a worker's claim may wait for work in one."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
os.environ["WORKLOAD_PROCESS_KIND"] = "web"

from django.conf import settings

wsgi_app = "platform_site.wsgi:application"
bind = [settings.WORKLOAD.bind]
worker_class = "gthread"
workers = settings.WORKLOAD.web_processes
threads = settings.WORKLOAD.web_threads
keepalive = 75
"""Seconds; longer than the usual 60 of proxies, so that never we close under a request on its way."""
timeout = 60
graceful_timeout = 30
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 - heartbeat files, no content
control_socket_disable = True  # one file in the home folder for all installs of a user, and unused
accesslog = None  # the request log is structured and ours
errorlog = "-"
loglevel = "warning"
proc_name = "workload-web"


def post_worker_init(worker: Any) -> None:
    """Listen for work and say that the control plane is there; at the end, let waiting claims go."""
    from dispatch.wakeup import process_wakeups  # the apps are loaded only now

    process_wakeups().start(alive=lambda: worker.alive)
