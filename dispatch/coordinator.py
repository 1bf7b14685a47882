"""The coordinator's loop: stand by, lead, step down. Which duties there are is in ``dispatch.duties``.

A leader passes once per interval over all duties, and at once over the quick ones when it is woken or when
the time of a duty ran out before its work did. Every pass finds its work from the tables; a wake-up only makes it come
sooner.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import psycopg
from django.db import Error

from dispatch.leadership import Fence, Leadership, LeadershipLost, Term
from dispatch.stopping import StopRequest
from platform_site import wake
from platform_site.pause import Pause

DUTY_BUDGET_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 1.0
"""Below the 3 s after which the server ends an idle coordinator session."""
TROUBLE_PAUSES = (0.25, 0.5, 1.0, 2.0)
"""Seconds between tries while the database refuses; the last one repeats."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """One step of a pass. ``run`` does one bounded batch under the fence and returns how much it changed."""

    name: str
    run: Callable[[Fence], int]
    on_wake: bool = False
    """Also part of the passes between the periodic ones; cheap when there is nothing to do."""
    wakes_workers: bool = False
    """What it changes is work for claims that wait."""
    spacing: float = 0.0
    """Seconds that must lie between two runs."""


class ExtraDuty(Protocol):
    """A further step, handed in by the site, which says itself when it wants to be called again."""

    def run_once(self) -> Pause:
        """Do at most a second of work."""


@dataclass(slots=True)
class _Extra:
    duty: ExtraDuty
    due_at: float = float("-inf")


@dataclass(slots=True, kw_only=True)
class Timing:
    """Seconds: between periodic passes, between beats of the leader, between tries of a standby."""

    pass_interval: float = 1.0
    beat_interval: float = 1.0
    standby_interval: float = 0.25
    duty_budget: float = DUTY_BUDGET_SECONDS


@dataclass(slots=True)
class _Schedule:
    """When what is due, on the local monotonic clock. All of it is due when a term begins."""

    full_at: float = float("-inf")
    beat_at: float = float("-inf")
    pass_again: bool = False
    wake_owed: bool = False
    woke_at: float = float("-inf")
    not_before: dict[str, float] = field(default_factory=dict)


class Coordinator:
    """One contender and, while it leads, the one that moves everything that no request moves.

    ``begin_pass`` is told that a pass starts, ``after_pass`` that the loop lives (the watchdog), ``observe``
    each duty's outcome (success, empty, error) and seconds. ``failures`` counts what was logged, by duty.
    One thread, whose ``default`` connection is the leader's session.
    """

    def __init__(
        self,
        leadership: Leadership,
        duties: Sequence[Duty],
        *,
        timing: Timing | None = None,
        begin_pass: Callable[[], None] = lambda: None,
        after_pass: Callable[[], None] = lambda: None,
        observe: Callable[[str, str, float], None] = lambda _duty, _outcome, _seconds: None,
        extra_duties: Sequence[ExtraDuty] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures: Counter[str] = Counter()
        self._leadership = leadership
        self._duties = tuple(duties)
        self._timing = timing or Timing()
        self._begin_pass = begin_pass
        self._after_pass = after_pass
        self._observe = observe
        self._extras = [_Extra(duty) for duty in extra_duties]
        self._clock = clock
        self._term: Term | None = None
        self._schedule = _Schedule()
        self._troubles = 0

    @property
    def leading(self) -> bool:
        """Whether this process believes to lead. Only the fence knows."""
        return self._term is not None

    def run(self, stop: StopRequest) -> None:
        """Loop until asked to stop; then give up leadership, so that another takes over at once."""
        try:
            while not stop.requested:
                pause = self.run_once()
                self._after_pass()
                self._wait(pause, stop)
        finally:
            self._term = None
            self._leadership.release()

    def run_once(self) -> Pause:
        """One try for leadership, or one pass. Trouble with the database ends the term, never the process."""
        try:
            pause = self._stand_by() if self._term is None else self._lead(self._term)
        except (LeadershipLost, Error, psycopg.Error) as error:
            return self._step_down(error)
        self._troubles = 0
        return pause

    def _stand_by(self) -> Pause:
        term = self._leadership.try_acquire()
        if term is None:
            if self._timing.standby_interval > LONGEST_WAIT_SECONDS:
                self._leadership.release()  # the server would end the session before the next try
            return Pause(self._timing.standby_interval)
        logger.info("Leading.", extra={"epoch": term.epoch})
        self._term, self._schedule = term, _Schedule()
        return Pause.none()

    def _lead(self, term: Term) -> Pause:
        schedule = self._schedule
        full = self._clock() >= schedule.full_at
        if full:
            schedule.full_at = self._clock() + self._timing.pass_interval
        if full or schedule.pass_again:
            # What a duty changes is work for those behind it, so one pass is enough, unless time cut a duty short.
            schedule.pass_again = False
            self._begin_pass()
            for duty in self._duties:
                if full or duty.on_wake:
                    self._perform(duty, term)
        self._perform_extras(term)
        self._beat_if_due(term)
        self._send_owed_wake()
        return self._next_pause()

    def _perform(self, duty: Duty, term: Term) -> None:
        """One duty, unless it was put off. A fault of its own is logged and counted."""
        started = self._clock()
        if started < self._schedule.not_before.get(duty.name, started):
            return
        if duty.spacing:
            self._schedule.not_before[duty.name] = started + duty.spacing
        try:
            changed = self._batches(duty, term, until=started + self._timing.duty_budget)
        except LeadershipLost:
            raise
        except Exception:
            logger.exception("The duty %s failed; the others go on.", duty.name, extra={"epoch": term.epoch})
            self._observe(duty.name, "error", self._clock() - started)
            self._failed(duty.name, term)
            return
        self._observe(duty.name, "success" if changed else "empty", self._clock() - started)

    def _batches(self, duty: Duty, term: Term, *, until: float) -> int:
        """Batch after batch while there is something to change and time left; what is left, in another pass."""
        total = 0
        while True:
            changed = duty.run(term)
            total += changed
            if changed and duty.wakes_workers:
                self._wake_workers()
            self._beat_if_due(term)
            if not changed:
                return total
            if self._clock() >= until:
                self._schedule.pass_again = True
                return total

    def _failed(self, name: str, term: Term) -> None:
        """Leave a failing duty out until the next interval, if the session still leads at all.

        The beat tells trouble of the database, on which it raises, from a fault of the duty: one poisoned
        row must not depose leader after leader while the queue stands still.
        """
        self.failures[name] += 1
        self._schedule.not_before[name] = self._clock() + self._timing.pass_interval
        self._beat(term)

    def _perform_extras(self, term: Term) -> None:
        for extra in self._extras:
            if self._clock() < extra.due_at:
                continue
            name = type(extra.duty).__name__
            try:
                pause = extra.duty.run_once()
            except LeadershipLost:
                raise
            except Exception:
                logger.exception("The duty %s failed; the others go on.", name, extra={"epoch": term.epoch})
                pause = Pause(self._timing.pass_interval)
                self._failed(name, term)
            extra.due_at = self._clock() + pause.seconds
            self._beat_if_due(term)

    def _beat_if_due(self, term: Term) -> None:
        if self._clock() >= self._schedule.beat_at:
            self._beat(term)

    def _beat(self, term: Term) -> None:
        term.beat()
        self._schedule.beat_at = self._clock() + self._timing.beat_interval

    def _wake_workers(self) -> None:
        """On the leader's own session, so no timer's thread: what is held back goes with a later pass."""
        now = self._clock()
        self._schedule.wake_owed = now < self._schedule.woke_at + wake.SPACING_SECONDS
        if not self._schedule.wake_owed:
            self._schedule.woke_at = now
            wake.send(wake.WORKERS_CHANNEL)

    def _send_owed_wake(self) -> None:
        if self._schedule.wake_owed:
            self._wake_workers()

    def _next_pause(self) -> Pause:
        schedule = self._schedule
        if schedule.pass_again:
            return Pause.none()
        due = [schedule.full_at, schedule.beat_at, *(extra.due_at for extra in self._extras)]
        if schedule.wake_owed:
            due.append(schedule.woke_at + wake.SPACING_SECONDS)
        return Pause.after(min(min(due) - self._clock(), LONGEST_WAIT_SECONDS))

    def _step_down(self, error: Exception) -> Pause:
        """End the session, and with it the lock; then stand by. Never more often than the pauses allow."""
        was_leading, self._term = self._term, None
        if was_leading is not None:
            logger.warning("Stepping down: %s", error, extra={"epoch": was_leading.epoch})
        elif self._troubles == 0:
            logger.warning("The database refuses the coordinator, which goes on trying: %s", error)
        self._leadership.release()
        pause = Pause(TROUBLE_PAUSES[min(self._troubles, len(TROUBLE_PAUSES) - 1)])
        self._troubles += 1
        return pause

    def _wait(self, pause: Pause, stop: StopRequest) -> None:
        """Until the pause is over, a wake-up comes, or the stop is requested."""
        if not pause.seconds:
            return
        try:
            if self._leadership.wait(pause.seconds, interrupt=stop.fileno()):
                self._schedule.pass_again = True
        except psycopg.Error as error:
            self._step_down(error)
