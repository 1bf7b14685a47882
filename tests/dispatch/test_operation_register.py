"""Registering: every start of a process is a session of its own, and only a digest of its token is kept."""

from __future__ import annotations

import pytest

from dispatch.errors import WorkerProtocolUnsupported
from dispatch.lease import token_digest
from dispatch.models import Worker
from dispatch.operations.register import register
from dispatch.sessions import find_session
from tests.support.platform import a_worker

pytestmark = pytest.mark.django_db


def test_a_session_begins_active_and_its_token_is_not_stored() -> None:
    worker = a_worker(name="host-1", slots=8, kinds=["python", "mock", "python"], labels={"zone": "x"})
    row = Worker.objects.get()
    assert (row.display_name, row.max_concurrency, row.state) == ("host-1", 8, "active")
    assert (row.executor_kinds, row.labels) == (["mock", "python"], {"zone": "x"})
    assert bytes(row.session_digest) == token_digest(worker.token)
    assert worker.token not in str(Worker.objects.values())


def test_the_same_process_starting_again_is_another_worker() -> None:
    first, second = a_worker(), a_worker()
    assert first.identity.id != second.identity.id
    assert first.token != second.token


def test_a_token_finds_its_worker_and_a_guess_finds_nobody() -> None:
    worker = a_worker(slots=3)
    assert find_session(worker.token) == worker.identity
    assert find_session("guess") is None


def test_another_protocol_is_refused() -> None:
    with pytest.raises(WorkerProtocolUnsupported):
        register(
            display_name="w",
            protocol_version=2,
            executor_kinds=["mock"],
            max_concurrency=1,
            labels={},
            drills=False,
            tenant_id=None,
        )
    assert not Worker.objects.exists()
