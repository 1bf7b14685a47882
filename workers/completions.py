"""Finished results on their way back: gathered, sent in one call, sent again until answered."""

from __future__ import annotations

import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from workers.account import Account, Held
from workers.client import ControlPlane, Refused, SessionEnded, Unavailable, completion_item
from workers.messages import CompletionAnswer, Lease, Refill
from workers.process import Backoff, Clock

logger = logging.getLogger("workers.completions")

MAX_ITEMS = 1024
MAX_BODY_BYTES = 900_000  # the control plane takes 1 MiB
GATHER_SECONDS = 0.002
ALONE_AFTER = 3
"""After so many failed calls a result is sent alone: a bad neighbour cannot hold up the rest."""


@dataclass(slots=True, eq=False)
class Finished:
    """A result to submit; `item` never changes, so that a repeat is the same result."""

    held: Held
    item: str
    size: int
    sends: int = 0
    backoff: Backoff = field(default_factory=Backoff)

    @classmethod
    def of(cls, held: Held, result: str) -> Finished:
        """Encode the item once, in the thread that executed."""
        item = completion_item(held.lease, result)
        return cls(held, item, len(item.encode()) + 1)


class Outbox:
    """Results that wait to be sent, new ones in order and repeats at their time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._fresh: deque[Finished] = deque()
        self._again: list[tuple[float, int, Finished]] = []
        self._number = 0
        self._closed = False

    def put(self, finished: Finished) -> None:
        """Send as soon as possible."""
        with self._condition:
            self._fresh.append(finished)
            if len(self._fresh) == 1:
                self._condition.notify_all()

    def put_again(self, finished: Finished, *, after: float) -> None:
        """Send again `after` seconds from now."""
        with self._condition:
            self._number += 1
            heapq.heappush(self._again, (self._clock() + after, self._number, finished))
            self._condition.notify_all()

    def close(self) -> None:
        """End `take`; what was not sent is given up."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def wait(self) -> bool:
        """Wait until something is due; False once closed."""
        with self._condition:
            while not self._closed and not self._is_due():
                self._condition.wait(self._until_due())
            return not self._closed

    def take(self) -> list[Finished]:
        """What is due and fits into one call; something that failed often comes alone."""
        batch: list[Finished] = []
        size = 0
        with self._condition:
            while self._is_due() and len(batch) < MAX_ITEMS:
                repeat = bool(self._again) and self._again[0][0] <= self._clock()
                first = self._again[0][2] if repeat else self._fresh[0]
                alone = first.sends >= ALONE_AFTER
                if batch and (alone or size + first.size > MAX_BODY_BYTES):
                    break
                batch.append(first)
                size += first.size
                if repeat:
                    heapq.heappop(self._again)
                else:
                    self._fresh.popleft()
                if alone:
                    break
        return batch

    def _is_due(self) -> bool:
        return bool(self._fresh) or (bool(self._again) and self._again[0][0] <= self._clock())

    def _until_due(self) -> float | None:
        return max(0.0, self._again[0][0] - self._clock()) if self._again else None


class CompletionSender:
    """One thread: while a call is in flight further results gather for the next one."""

    def __init__(
        self,
        plane: ControlPlane,
        account: Account,
        outbox: Outbox,
        *,
        clock: Clock,
        stopping: threading.Event,
        unstarted: Callable[[], int],
        granted: Callable[[Sequence[Lease], float, Sequence[Held]], None],
        ended: Callable[[SessionEnded], None],
    ) -> None:
        self._plane = plane
        self._account = account
        self._outbox = outbox
        self._clock = clock
        self._stopping = stopping
        self._unstarted = unstarted
        self._granted = granted
        self._ended = ended

    def run(self) -> None:
        """Send until the outbox is closed or the session ends."""
        while self._outbox.wait():
            self._gather()
            batch = [finished for finished in self._outbox.take() if self._still_wanted(finished)]
            if not batch:
                continue
            try:
                self._send(batch)
            except SessionEnded as error:
                self._ended(error)
                return

    def _gather(self) -> None:
        """Let leases start that were handed over this instant: short ones finish in time for this very call.

        Nothing waits when nothing was just handed over, so a single task is answered without delay.
        """
        until = self._clock() + GATHER_SECONDS
        while self._unstarted() and self._clock() < until:
            self._stopping.wait(GATHER_SECONDS / 8)

    def _still_wanted(self, finished: Finished) -> bool:
        if self._account.wanted(finished.held):
            return True
        logger.warning("result dropped: the lease is gone", extra=finished.held.fields)
        return False

    def _send(self, batch: list[Finished]) -> None:
        alone = batch[0].sends >= ALONE_AFTER
        refill = None if alone else self._account.ask([finished.held for finished in batch])
        for finished in batch:
            finished.held.submitted = True
        sent_at = self._clock()
        try:
            answer = self._plane.complete([finished.item for finished in batch], refill)
        except Unavailable as error:
            if refill:
                self._account.unanswered()
            self._again(batch, error)
            return
        except Refused as error:
            if refill:
                self._account.unanswered()
            self._refused(batch, error)
            return
        except BaseException:
            if refill:
                self._account.unanswered()
            raise
        self._settle(batch, answer, refill, sent_at)

    def _settle(
        self, batch: list[Finished], answer: CompletionAnswer, refill: Refill | None, sent_at: float
    ) -> None:
        settled: list[Held] = []
        again: list[Finished] = []
        for finished in batch:
            outcome = answer.outcomes.get(finished.held.lease.dispatch_id, "retry")
            if outcome == "retry":
                again.append(finished)
                continue
            settled.append(finished.held)
            if outcome not in ("applied", "replayed"):
                logger.warning("result refused: %s", outcome, extra=finished.held.fields)
        if refill and not answer.refill_code:
            self._granted(answer.leases, sent_at, settled)
        else:
            if refill:
                self._account.defer(answer.retry_after_ms / 1000)
                self._account.unanswered()
            self._account.settle(settled)
        for finished in again:
            self._outbox.put_again(finished, after=finished.backoff.next())

    def _again(self, batch: list[Finished], error: Unavailable) -> None:
        logger.warning("completion failed: %s", error.code, extra={"count": len(batch)})
        if error.status:  # a network without answer says nothing about a bad neighbour
            for finished in batch:
                finished.sends += 1
        pause = max(batch[0].backoff.next(), error.retry_after_ms / 1000)
        for finished in batch:
            self._outbox.put_again(finished, after=pause)

    def _refused(self, batch: list[Finished], error: Refused) -> None:
        """The call as a whole was refused: each result alone, and one refused alone is given up."""
        if len(batch) > 1:
            for finished in batch:
                finished.sends = ALONE_AFTER
                self._outbox.put_again(finished, after=0.0)
            return
        logger.error("result refused: %s", error.code, extra=batch[0].held.fields)
        self._account.settle([batch[0].held])
