"""The worker protocol over HTTP, call by call."""

from __future__ import annotations

import pytest

from tests.support.http import WorkerApi
from tests.support.platform import a_run, a_task, queue_all

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_chain_runs_through_http() -> None:
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "b")])
    worker = WorkerApi()
    for key in "abc":
        queue_all()
        (lease,) = worker.leases()
        assert (lease["task_key"], lease["attempt"], lease["run_id"]) == (key, 1, str(run_id))
        assert worker.complete(lease).json == {"outcome": "applied"}
