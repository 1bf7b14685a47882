"""Reaching a state the legal way: publish, start, queue, claim and complete through the operations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from dispatch.errors import LeaseLost
from dispatch.leadership import LeadershipLost
from dispatch.models import Worker
from dispatch.operations.claim import Claimed, Lease, claim
from dispatch.operations.complete import Item, Outcome, complete
from dispatch.operations.drain import drain
from dispatch.operations.heartbeat import Beat, NamedLease, heartbeat
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.register import register
from dispatch.operations.release import release
from dispatch.operations.results import check_result
from dispatch.operations.skips import Skips
from dispatch.sessions import WorkerIdentity, find_session
from dispatch.states import WorkerState
from platform_site.access.tenants import default_tenant
from workflows.operations.publish_version import publish_workflow
from workflows.operations.request_cancel import request_cancel
from workflows.operations.start_run import RunRequest, start_run

LEASE = timedelta(seconds=15)
KINDS = ("mock", "python")


class OpenFence:
    """A fence that always holds: for tests of duties, not of leadership."""

    def check(self) -> None:
        return None

    def beat(self) -> None:
        return None


class ShutFence:
    """A fence that never holds: whoever checks it must write nothing."""

    def check(self) -> None:
        raise LeadershipLost(1)

    def beat(self) -> None:
        raise LeadershipLost(1)


@dataclass
class TestWorker:
    """A worker session, and what it would send."""

    __test__ = False
    identity: WorkerIdentity
    token: str
    calls: int = 0
    leases: dict[UUID, Lease] = field(default_factory=dict)

    def claim(self, slots: int = 1, *, claim_no: int | None = None, lease: timedelta = LEASE) -> Claimed:
        """Claim under the next number, or again under an old one."""
        if claim_no is None:
            self.calls += 1
            claim_no = self.calls
        claimed = claim(
            worker=self.identity,
            session_token=self.token,
            slots=slots,
            claim_no=claim_no,
            lease_duration=lease,
        )
        self.leases.update({one.dispatch_id: one for one in claimed.leases})
        return claimed

    def complete(self, leases: Sequence[Lease], **result: Any) -> list[Outcome]:
        """The same result for every lease; success without one."""
        sent = {"kind": "success", "output": None, **result}
        items = [Item(lease.dispatch_id, lease.token, check_result(sent)) for lease in leases]
        return complete(worker_id=self.identity.id, items=items)

    def beat(
        self, leases: Sequence[Lease], *, answered_through: int | None = None, lease: timedelta = LEASE
    ) -> Beat:
        """A heartbeat that lists these leases; by default every call so far was answered."""
        return heartbeat(
            worker_id=self.identity.id,
            leases=[NamedLease(one.dispatch_id, one.token) for one in leases],
            answered_through=self.calls if answered_through is None else answered_through,
            lease_duration=lease,
        )

    def release(self, lease: Lease) -> Outcome:
        """Give one lease back unstarted."""
        return release(worker_id=self.identity.id, dispatch_id=lease.dispatch_id, lease_token=lease.token)

    def drain(self) -> WorkerState:
        """Take nothing more."""
        return drain(worker_id=self.identity.id)

    def state(self) -> str:
        """Its stored state."""
        return Worker.objects.get(pk=self.identity.id).state

    def request_cancel(self, run_id: UUID) -> None:
        """Ask for a cancel, as a person would; here for brevity."""
        request_cancel(run_ids=[run_id], tenant_id=None, actor="ann")

    def stop(self) -> None:
        """Give back what is held and leave in order."""
        for lease in self.leases.values():
            with suppress(LeaseLost):
                self.release(lease)
        assert self.drain() is WorkerState.STOPPED


def a_worker(
    *,
    slots: int = 16,
    kinds: Sequence[str] = KINDS,
    name: str = "w",
    labels: dict[str, str] | None = None,
    tenant_id: int | None = None,
) -> TestWorker:
    """Register a worker; it serves every tenant unless one is named."""
    registered = register(
        display_name=name,
        protocol_version=1,
        executor_kinds=kinds,
        max_concurrency=slots,
        labels=labels or {},
        drills=False,
        tenant_id=tenant_id,
    )
    identity = find_session(registered.session_token)
    assert identity is not None
    return TestWorker(identity, registered.session_token)


def a_task(key: str, *depends_on: str, **more: Any) -> dict[str, Any]:
    """One task of a definition."""
    return {"key": key, "executor": "mock", "action": "noop", "depends_on": list(depends_on), **more}


def a_definition(name: str, tasks: Sequence[dict[str, Any]], *, concurrency: int = 10_000) -> dict[str, Any]:
    """A definition of these tasks."""
    return {"id": name, "concurrency": concurrency, "tasks": list(tasks)}


def published(name: str, tasks: Sequence[dict[str, Any]], *, concurrency: int = 10_000, **more: Any) -> str:
    """Publish a workflow in the default tenant; its name."""
    document = {**a_definition(name, tasks, concurrency=concurrency), **more}
    publish_workflow(tenant_id=default_tenant().id, document=document, created_by="test", executors=KINDS)
    return name


def started(workflow: str, **request: Any) -> UUID:
    """Start a run of the latest version; its id."""
    request_ = RunRequest(workflow=workflow, **request)
    return start_run(request_, tenant_id=default_tenant().id, created_by="test").run_id


def a_run(tasks: Sequence[dict[str, Any]], *, name: str = "flow", concurrency: int = 10_000) -> UUID:
    """Publish these tasks and start a run of them."""
    return started(published(name, tasks, concurrency=concurrency))


def queue_all(*, dispatch_limit: int = 10_000) -> int:
    """Let the coordinator queue until nothing more can be."""
    total = 0
    skips = Skips()
    skips.begin_pass()
    while queued := queue_ready(fence=OpenFence(), dispatch_limit=dispatch_limit, skips=skips):
        total += queued
    return total


def promote_all() -> int:
    """Let the coordinator promote until no retry is due."""
    total = 0
    skips = Skips()
    skips.begin_pass()
    while promoted := promote_retries(fence=OpenFence(), skips=skips):
        total += promoted
    return total
