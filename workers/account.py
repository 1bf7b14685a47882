"""The account of slots, leases and claim numbers under one lock, and the local clock of each lease."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from workers.messages import HeartbeatAnswer, Lease, Refill
from workers.process import Clock

SMALL_MARGIN_SHARE = 0.1

Snapshot = tuple[list[tuple[str, str]], int]
"""Leases as (dispatch id, lease token), and the number of the last call answered."""
Renewals = list[tuple[HeartbeatAnswer, float]]
"""Answers to heartbeats, each with the time at which it was sent."""


@dataclass(slots=True, eq=False)
class Held:
    """A lease in this process. Guarded by the account's lock, except for what never changes.

    `listed`: the control plane may still take it for ours, so heartbeats name it.
    `occupying`: it keeps a slot busy, waiting for a thread or executing.
    `submitted`: its result, or its release, was sent, so that an answer to it decides, even if the lease has
    ended meanwhile: it may have ended by that very call.
    `void`: its result is not wanted any more; `cancelled` tells the execution so.
    """

    lease: Lease
    attempt_deadline: float
    safe_until: float
    gone_at: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    listed: bool = True
    occupying: bool = True
    submitted: bool = False
    void: bool = False
    timed_out: bool = False

    @property
    def fields(self) -> dict[str, str | int]:
        """What every log line about this lease carries; never inputs, outputs or tokens."""
        request = self.lease.request
        return {
            "run_id": request.run_id,
            "task_key": request.task_key,
            "attempt": request.attempt,
            "dispatch_id": request.dispatch_id,
        }


def hold(lease: Lease, *, since: float, margin: float) -> Held:
    """Start the local clock of a lease whose remaining times count from `since` at the earliest.

    `since` lies before the control plane made its answer, so that every local deadline lies before the real
    one. The safety deadline is min(lease - margin, attempt - min(margin, 10 % of what remains)). A lease that
    lasts until the end of its attempt needs no renewal, so the lease term says nothing then: else an attempt
    shorter than the margin could never run.
    """
    lease_end = since + lease.lease_remaining_ms / 1000
    remaining = lease.attempt_remaining_ms / 1000
    deadline = since + remaining - min(margin, SMALL_MARGIN_SHARE * remaining)
    safe = deadline if lease_end >= deadline else lease_end - margin
    return Held(lease=lease, attempt_deadline=deadline, safe_until=safe, gone_at=lease_end)


class Account:
    """Slots, leases and claim numbers. Every method is one step under the one lock.

    A slot is taken from the moment it is asked for until its lease is neither listed nor executing. At most
    one call that may lease is in flight (see the package); its number is used again until it is answered.

    `changed` is called after every change, without the lock. `late_renewals` tells what another process
    renewed while this one could not; it is asked before anything is given up for being late.
    """

    def __init__(
        self,
        slots: int,
        *,
        margin: float,
        clock: Clock,
        changed: Callable[[], None],
        late_renewals: Callable[[], Renewals] = list,
    ) -> None:
        self.slots = slots
        self._late_renewals = late_renewals
        self._margin = margin
        self._clock = clock
        self._changed = changed
        lock = threading.Lock()
        self._condition = threading.Condition(lock)  # for whoever wants to ask
        self._sooner = threading.Condition(lock)  # for the watch
        self._watched_until = 0.0
        self._held: dict[str, Held] = {}
        self._claim_no = 0
        self._answered = True
        self._asking = False
        self._closed = False
        self._not_before = 0.0
        self._freed = 0

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, finishing: Sequence[Held] = ()) -> Refill | None:
        """Take the right to ask for every free slot; None when another call asks, nothing is free, or closed.

        `finishing`: held leases that the call itself ends before it leases.
        """
        with self._condition:
            ending = sum(held.lease.dispatch_id in self._held for held in finishing)
            free = self.slots - len(self._held) + ending
            if self._asking or self._closed or free <= 0 or self._clock() < self._not_before:
                return None
            self._asking = True
            if self._answered:
                self._claim_no += 1
                self._answered = False
            return Refill(slots=free, claim_no=self._claim_no)

    def unanswered(self) -> None:
        """The call that asked has no answer: its number is kept for the next one."""
        with self._condition:
            self._asking = False
            self._wake()
        self._changed()

    def answered(
        self, leases: Sequence[Lease], *, since: float, settled: Iterable[Held] = ()
    ) -> tuple[list[Held], list[Held]]:
        """Enter the leases of an answer: (to execute, to release).

        Leases are released that nobody asked for (more than the slots), or that arrive after the account
        closed.
        `settled` leave in the same step, so that the slots they free are there for the new ones.
        """
        run: list[Held] = []
        give_back: list[Held] = []
        with self._condition:
            self._settle(settled)
            for lease in leases:
                if lease.dispatch_id in self._held:
                    continue
                held = hold(lease, since=since, margin=self._margin)
                surplus = self._closed or len(self._held) >= self.slots
                held.occupying = not surplus
                self._held[lease.dispatch_id] = held
                if held.safe_until < self._watched_until:
                    self._sooner.notify_all()
                (give_back if surplus else run).append(held)
            self._asking = False
            self._answered = True
            self._wake()
        self._changed()
        return run, give_back

    def defer(self, seconds: float) -> None:
        """The control plane wants no call that may lease for so long."""
        with self._condition:
            self._not_before = self._clock() + seconds

    def wait_for_slot(self) -> bool:
        """Wait until this worker may ask (True), or the account closes (False)."""
        with self._condition:
            while not self._closed:
                may_ask = self._may_ask_or_closed()
                early = self._not_before - self._clock()
                if may_ask and early <= 0:
                    return True
                self._condition.wait(early if may_ask else None)
            return False

    def pause(self, seconds: float, *, until_freed: bool) -> None:
        """Wait so long; closing ends it at once, and so does a freed slot if `until_freed`."""
        with self._condition:
            freed = self._freed
            self._condition.wait_for(lambda: self._closed or (until_freed and self._freed != freed), seconds)

    def _wake(self) -> None:
        if self._may_ask_or_closed():
            self._condition.notify_all()

    def _may_ask_or_closed(self) -> bool:
        return self._closed or (not self._asking and len(self._held) < self.slots)

    # -- a lease's way out -------------------------------------------------------------------------

    def executed(self, held: Held) -> bool:
        """The execution ended, its slot's thread is free; whether its result is still wanted."""
        with self._condition:
            held.occupying = False
            wanted = not held.void
            self._forget_if_over(held)
            self._wake()
        if not wanted:
            self._changed()
        return wanted

    def withdrawn(self, held: Held) -> None:
        """The execution never started and never will."""
        with self._condition:
            held.occupying = False

    def settle(self, settled: Iterable[Held]) -> None:
        """The completion or release of these was answered, or refused for good."""
        with self._condition:
            self._settle(settled)
            self._wake()
        self._changed()

    def wanted(self, held: Held) -> bool:
        """Whether the result of `held` may still be submitted."""
        with self._condition:
            if not held.void and self._clock() < held.gone_at:
                return True
        self._catch_up()
        with self._condition:
            return not held.void and self._clock() < held.gone_at

    def _settle(self, settled: Iterable[Held]) -> None:
        for held in settled:
            held.listed = False
            self._forget_if_over(held)

    def _forget_if_over(self, held: Held) -> None:
        if not held.listed and not held.occupying:
            self._held.pop(held.lease.dispatch_id, None)
            self._freed += 1

    def _void(self, held: Held) -> None:
        held.void = True
        held.cancelled.set()

    # -- renewal and expiry ------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What a heartbeat says, taken in one step: leases listed, and the number answered through.

        Once closed nothing resends a call, so an unanswered number is given up: what it leased and we never
        saw is then found lost by the control plane and given to others.
        """
        with self._condition:
            leases = [(i, held.lease.lease_token) for i, held in self._held.items() if held.listed]
            given_up = self._closed and not self._asking
            through = self._claim_no if self._answered or given_up else self._claim_no - 1
            return leases, through

    def renewed(self, answer: HeartbeatAnswer, *, sent_at: float) -> list[Held]:
        """Extend the leases renewed and void those that are not ours any more; the latter are returned."""
        lost: list[Held] = []
        with self._condition:
            for entry in answer.leases:
                held = self._held.get(entry.dispatch_id)
                if held is None or not held.listed:
                    continue
                if entry.status == "renewed":
                    self._extend(held, sent_at + entry.lease_remaining_ms / 1000)
                elif not held.submitted:
                    held.listed = False
                    self._void(held)
                    self._forget_if_over(held)
                    lost.append(held)
            self._wake()
        if lost:
            self._changed()
        return lost

    def _extend(self, held: Held, lease_end: float) -> None:
        safe = held.attempt_deadline if lease_end >= held.attempt_deadline else lease_end - self._margin
        held.safe_until = max(held.safe_until, min(safe, held.attempt_deadline))
        held.gone_at = max(held.gone_at, lease_end)

    def expire(self) -> list[Held]:
        """Void what is past its local deadline; what was is returned.

        An execution ends at its safety deadline; a result on its way may try until the lease is gone. A lease
        that was not renewed in time is listed no more: it may be given to others at once. One that reached
        the end of its attempt stays listed until the control plane says that it is over: unlisted it would
        count as lost, which consumes no attempt, and a task that always overruns would run for ever.
        """
        self._catch_up()
        with self._condition:
            now = self._clock()
            expired = [held for held in self._held.values() if not held.void and self._ends_at(held) <= now]
            for held in expired:
                self._void(held)
                held.timed_out = held.attempt_deadline <= now
                held.listed = held.timed_out
                self._forget_if_over(held)
            self._wake()
        if expired:
            self._changed()
        return expired

    def _catch_up(self) -> None:
        for answer, sent_at in self._late_renewals():
            self.renewed(answer, sent_at=sent_at)

    def _ends_at(self, held: Held) -> float:
        return held.safe_until if held.occupying else held.gone_at

    def wait_for_deadline(self) -> None:
        """Wait until the next local deadline, a lease with an earlier one, or `wake_watch`."""
        with self._condition:
            ends = (self._ends_at(held) for held in self._held.values() if not held.void)
            self._watched_until = min(ends, default=math.inf)
            if math.isinf(self._watched_until):
                self._sooner.wait()
            else:
                self._sooner.wait(max(0.0, self._watched_until - self._clock()))
            self._watched_until = 0.0

    def wake_watch(self) -> None:
        """Let the watch look whether the worker stops."""
        with self._condition:
            self._sooner.notify_all()

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ask for nothing more; leases that still arrive are released."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def cancel_all(self) -> list[Held]:
        """Void everything held; what the control plane may still take for ours is returned."""
        with self._condition:
            self._closed = True
            for held in self._held.values():
                self._void(held)
            abandoned = [held for held in self._held.values() if held.listed]
            self._condition.notify_all()
        self._changed()
        return abandoned

    @property
    def closed(self) -> bool:
        """Whether this worker has stopped asking for work."""
        with self._condition:
            return self._closed

    @property
    def awaits_answers_alone(self) -> bool:
        """Closed, and whatever is still held was submitted: the answers on their way say how it ended."""
        with self._condition:
            return self._closed and all(held.submitted for held in self._held.values())

    @property
    def asking(self) -> bool:
        """Whether a call that may lease is in flight."""
        with self._condition:
            return self._asking

    @property
    def executing(self) -> int:
        """Leases that keep a slot busy."""
        with self._condition:
            return sum(held.occupying for held in self._held.values())

    @property
    def held(self) -> int:
        """Leases listed or executing."""
        with self._condition:
            return len(self._held)
