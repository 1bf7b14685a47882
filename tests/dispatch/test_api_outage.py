"""The database goes away and comes back; the process stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from tests.support.http import WorkerApi, api_as
from tests.support.platform import a_run, a_task, queue_all

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_outage_is_503_at_the_edge_and_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker, operator = WorkerApi(), api_as("operator")
    run_id = a_run([a_task("a")])
    queue_all()
    (lease,) = worker.leases()
    connection.close()
    with monkeypatch.context() as outage:
        outage.setitem(connection.settings_dict, "HOST", str(tmp_path))  # a folder without a server
        answers = [
            worker.claim(),
            worker.complete(lease),
            worker.completions([(lease, {"kind": "success"})]),
            worker.post("heartbeat", {"leases": [], "answered_through": 0}),
            operator.get(f"runs/{run_id}"),
            operator.post("workflows/flow/runs"),
            operator.post(f"runs/{run_id}/cancel"),
        ]
    for answer in answers:
        assert (answer.status, answer.code) == (503, "unavailable"), answer
        assert int(answer.headers["Retry-After"]) >= 1
    assert worker.complete(lease).json == {"outcome": "applied"}
    assert operator.get(f"runs/{run_id}").json["state"] == "succeeded"
