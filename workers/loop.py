"""The claim loop, the execution of one lease, and giving leases back."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from observability import tracing
from workers import outcome
from workers.account import Account, Held
from workers.client import ControlPlane, Refused, SessionEnded, Unavailable
from workers.executors.base import Executor
from workers.messages import Lease
from workers.outcome import Outcome
from workers.process import Backoff, Clock
from workers.reports import Reports

logger = logging.getLogger("workers.loop")

MAX_WAIT_MS = 20_000
HELD_SHARE = 0.9
"""A claim that was held for so much of its wait was a pause in itself: the next follows at once."""


class ClaimLoop:
    """Waits at the control plane for work whenever slots are free and nobody else asks.

    `short_wait_ms` bounds the wait until the control plane is seen to tell how long it held a claim: the
    local clock of a lease starts at the earliest moment at which it can have been granted, which is else the
    moment of sending.
    """

    def __init__(
        self,
        plane: ControlPlane,
        account: Account,
        *,
        clock: Clock,
        short_wait_ms: int,
        granted: Callable[[Sequence[Lease], float, Sequence[Held]], None],
        ended: Callable[[SessionEnded], None],
        draining: Callable[[str], None],
    ) -> None:
        self._plane = plane
        self._account = account
        self._clock = clock
        self._wait_ms = short_wait_ms
        self._granted = granted
        self._ended = ended
        self._draining = draining
        self.idle = Backoff(0.25, 5.0)

    def run(self) -> None:
        """Claim until the account closes or the session ends."""
        while self._account.wait_for_slot():
            try:
                self.claim()
            except SessionEnded as error:
                self._ended(error)
                return

    def claim(self) -> None:
        """One claim for every free slot; after an early empty answer a pause, which a freed slot ends."""
        asked = self._account.ask()
        if asked is None:
            return
        sent_at = self._clock()
        try:
            answer = self._plane.claim(slots=asked.slots, wait_ms=self._wait_ms, claim_no=asked.claim_no)
        except Unavailable as error:
            self._account.unanswered()
            logger.warning("claim failed: %s", error.code, extra={"count": asked.slots})
            self._account.pause(max(self.idle.next(), error.retry_after_ms / 1000), until_freed=False)
            return
        except Refused as error:
            self._account.unanswered()
            self._refused(error)
            return
        except BaseException:
            self._account.unanswered()
            raise
        waited_for = self._wait_ms / 1000
        if answer.waited_ms is not None:
            self._wait_ms = MAX_WAIT_MS
        self._granted(answer.leases, sent_at + (answer.waited_ms or 0) / 1000, ())
        if not answer.leases:
            self._account.pause(answer.retry_after_ms / 1000, until_freed=False)
            if self._clock() - sent_at < waited_for * HELD_SHARE:
                self._account.pause(self.idle.next(), until_freed=True)

    def _refused(self, error: Refused) -> None:
        if error.code == "worker_draining":
            self._draining("draining")
            return
        logger.warning("claim refused: %s", error.code, extra={"status": error.status})
        self._account.pause(self.idle.next(), until_freed=False)


@dataclass(frozen=True, slots=True)
class _Control:
    """What an executor sees of its lease (`executors.base.ExecutionControl`)."""

    held: Held
    reports: Reports

    @property
    def cancelled(self) -> threading.Event:
        return self.held.cancelled

    @property
    def deadline(self) -> float:
        return self.held.attempt_deadline

    def log(self, level: str, text: str) -> None:
        self.reports.log(self.held, level, text)

    def progress(self, percent: float | None, text: str) -> None:
        self.reports.progress(self.held, percent, text)


class Execution:
    """From a lease to the text of its result."""

    def __init__(self, executors: Mapping[str, Executor], reports: Reports) -> None:
        self._executors = executors
        self._reports = reports

    def run(self, held: Held) -> str | None:
        """Execute, classify, flush the reports, encode. None: the lease is void, nothing to submit."""
        if held.cancelled.is_set():
            return None
        request = held.lease.request
        facts = {**held.fields, "workflow_id": request.workflow_id, "action": request.action}
        with tracing.span("execute", facts, parent=request.traceparent) as span:
            came_of = self._execute(held)
            span.set_attribute("outcome", "canceled" if came_of is None else str(came_of.kind))
        self._reports.finish(held)
        return None if came_of is None or held.cancelled.is_set() else outcome.encode(came_of)

    def _execute(self, held: Held) -> Outcome | None:
        executor = self._executors.get(held.lease.executor_kind)
        if executor is None:
            return outcome.permanent("unsupported_executor", "this worker has no executor of that kind")
        try:
            return executor.execute(held.lease.request, _Control(held, self._reports))
        except Exception as error:  # an action may raise anything; `outcome` classifies it
            came_of = outcome.of_exception(error, canceled=held.cancelled.is_set())
            if came_of is not None and came_of.error_code == "unhandled_error":
                logger.warning("execution raised", exc_info=error, extra=held.fields)
            return came_of


class Releases:
    """Gives leases back whose execution never started; tried until answered or the lease is gone."""

    def __init__(
        self, plane: ControlPlane, account: Account, *, clock: Clock, stopping: threading.Event
    ) -> None:
        self._plane = plane
        self._account = account
        self._clock = clock
        self._stopping = stopping
        self._queue: queue.SimpleQueue[Held | None] = queue.SimpleQueue()

    def put(self, leases: Sequence[Held]) -> None:
        """Give these back in the background."""
        for held in leases:
            self._queue.put(held)

    def close(self) -> None:
        """End the thread after what was put before."""
        self._queue.put(None)

    def run(self) -> None:
        """Release one after the other until closed."""
        while (held := self._queue.get()) is not None:
            self._release(held)

    def _release(self, held: Held) -> None:
        backoff = Backoff()
        held.submitted = True
        while not self._stopping.is_set() and self._account.wanted(held):
            try:
                self._plane.release(held.lease.dispatch_id, held.lease.lease_token)
            except Unavailable as error:
                self._stopping.wait(max(backoff.next(), error.retry_after_ms / 1000))
                continue
            except (Refused, SessionEnded) as error:
                logger.info("release refused: %s", error.code, extra=held.fields)
            else:
                logger.info("lease given back unstarted", extra=held.fields)
            break
        self._account.settle([held])
