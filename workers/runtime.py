"""One worker process from registration to its exit code."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable, Mapping, Sequence

import requests

from observability.logs import bound
from workers import client
from workers.account import Account, Held, Snapshot
from workers.client import ControlPlane, ControlPlaneError, SessionEnded, Unavailable
from workers.completions import CompletionSender, Finished, Outbox
from workers.executors.base import Executor
from workers.leases import Heart, Watch
from workers.loop import MAX_WAIT_MS, ClaimLoop, Execution, Releases
from workers.messages import Lease, Registration, WorkerSession
from workers.options import WorkerOptions
from workers.pool import Pool
from workers.process import Backoff, Clock, ExitCode, StopRequests, monotonic
from workers.reports import Reports
from workers.standby import Standby

logger = logging.getLogger("workers.runtime")

REGISTER_SECONDS = 60.0
LAST_CLAIM_SECONDS = 1.0
"""How long a drained worker waits for the answer of a claim that was on its way."""
ABORT_SECONDS = 1.0
"""How long aborted executions get to notice."""

Register = Callable[[WorkerOptions], tuple[WorkerSession, ControlPlane]]


def register_over_http(options: WorkerOptions) -> tuple[WorkerSession, ControlPlane]:
    """Register at the control plane and connect to it with the session."""
    registration = Registration(
        options.name, options.kinds, options.concurrency, options.labels, options.drills
    )
    with requests.Session() as http:
        session = client.register(options.server_url, options.enrolment_token, registration, http)
    return session, client.HttpControlPlane(options.server_url, session)


class Worker:
    """Builds the parts after registration, watches over them, and takes them down in order.

    The main thread only waits: for a signal, for a part that failed, for the end of the work while draining.
    """

    def __init__(
        self,
        options: WorkerOptions,
        executors: Mapping[str, Executor],
        *,
        stop: StopRequests,
        register: Register = register_over_http,
        clock: Clock = monotonic,
    ) -> None:
        self._options = options
        self._executors = executors
        self._stop = stop
        self._register = register
        self._clock = clock
        self._margin = options.margin_ms / 1000
        self._stopping = threading.Event()
        self._failure: ExitCode | None = None
        self._server_drains = False

    # -- the life of a worker ----------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Work until told to stop; never raises for what the control plane does."""
        registered = self._registered()
        if isinstance(registered, ExitCode):
            return registered
        session, self._plane = registered
        short_wait_ms = (
            session.lease_duration_ms - 2 * session.heartbeat_interval_ms - self._options.margin_ms
        )
        if short_wait_ms <= 0:
            logger.error(
                "the lease of %s ms does not exceed two heartbeats of %s ms plus the margin of %s ms",
                session.lease_duration_ms, session.heartbeat_interval_ms, self._options.margin_ms,
            )  # fmt: skip
            self._drain()
            return ExitCode.LEASE_TOO_SHORT
        self._build(session, short_wait_ms=min(short_wait_ms, MAX_WAIT_MS))
        with bound(worker_id=session.worker_id):
            logger.info("worker started with %s slots", self._options.concurrency)
            self._start()
            try:
                return self._supervise()
            finally:
                self._take_down()

    def _registered(self) -> tuple[WorkerSession, ControlPlane] | ExitCode:
        """Register, waiting a bounded time for a control plane that is still starting."""
        backoff, give_up_at = Backoff(), self._clock() + REGISTER_SECONDS
        while not self._stop.count:
            try:
                return self._register(self._options)
            except Unavailable as error:
                pause = max(backoff.next(), error.retry_after_ms / 1000)
                if self._clock() + pause > give_up_at:
                    logger.error("cannot register: %s", error)  # noqa: TRY400  # the network trace says no more
                    return ExitCode.CANNOT_REGISTER
                logger.warning("the control plane does not answer yet: %s", error)
                self._stop.wait(pause)
            except ControlPlaneError as error:
                logger.error("registration refused: %s: %s", error.code, error)  # noqa: TRY400  # as above
                return ExitCode.CANNOT_REGISTER
        return ExitCode.CLEAN

    def _build(self, session: WorkerSession, *, short_wait_ms: int) -> None:
        clock, stopping, plane = self._clock, self._stopping, self._plane
        slots = self._options.concurrency
        self._standby = Standby(self._options.server_url, session) if self._options.standby else None
        late_renewals = self._standby.renewals if self._standby else list
        self._account = Account(
            slots, margin=self._margin, clock=clock, changed=self._look, late_renewals=late_renewals
        )
        self._reports = Reports(plane, clock=clock, stopping=stopping)
        self._releases = Releases(plane, self._account, clock=clock, stopping=stopping)
        self._outbox = Outbox(clock)
        execution = Execution(self._executors, self._reports)
        self._pool = Pool(slots, execution.run, self._executed, failed=self._failed)
        self._claims = ClaimLoop(
            plane, self._account, clock=clock, short_wait_ms=short_wait_ms,
            granted=self._granted, ended=self._session_ended, draining=self._drained_by_server,
        )  # fmt: skip
        self._sender = CompletionSender(
            plane, self._account, self._outbox, clock=clock, stopping=stopping,
            unstarted=lambda: self._pool.unstarted, granted=self._granted, ended=self._results_refused,
        )  # fmt: skip
        self._heart = Heart(
            plane, self._account, interval=session.heartbeat_interval_ms / 1000, clock=clock,
            stopping=stopping, snapshot=self._snapshot,
            ended=self._session_ended, draining=self._drained_by_server,
        )  # fmt: skip
        self._watch = Watch(self._account, stopping=stopping)

    def _snapshot(self) -> Snapshot:
        take = self._account.snapshot
        return self._standby.snapshot(take) if self._standby else take()

    def _start(self) -> None:
        parts: dict[str, Callable[[], None]] = {
            "heartbeat": self._heart.run,
            "watch": self._watch.run,
            "completions": self._sender.run,
            "releases": self._releases.run,
            "reports": self._reports.run,
            "claims": self._claims.run,
        }
        for name, run in parts.items():
            work = contextvars.copy_context().run
            threading.Thread(target=work, args=(self._part, run), name=name, daemon=True).start()

    def _part(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  # a part that dies ends the worker
            self._failed(error)

    # -- what the parts call -----------------------------------------------------------------------

    def _granted(self, leases: Sequence[Lease], since: float, settled: Sequence[Held]) -> None:
        run, give_back = self._account.answered(leases, since=since, settled=settled)
        if run:
            self._claims.idle.reset()
            if self._standby:
                self._standby.granted(run)
            self._pool.hand_over(run)
        if give_back:
            logger.warning("%s leases arrived that nobody waits for", len(give_back))
            self._releases.put(give_back)

    def _executed(self, held: Held, result: str | None) -> None:
        if self._account.executed(held) and result is not None:
            self._outbox.put(Finished.of(held, result))

    def _session_ended(self, error: SessionEnded) -> None:
        """Said to a heartbeat or a claim.

        A drained worker is stopped by the call that settles its last lease, and others may hear of that
        before the answer to the call itself is entered, which tells whether it was so.
        """
        if not self._account.awaits_answers_alone:
            self._fail_session(error)

    def _results_refused(self, error: SessionEnded) -> None:
        """Said to results: nothing will be answered any more."""
        if self._account.held or not self._account.closed:
            self._fail_session(error)

    def _fail_session(self, error: SessionEnded) -> None:
        logger.error("the session ended: %s: %s", error.code, error)
        self._fail(ExitCode.SESSION_ENDED)

    def _drained_by_server(self, state: str) -> None:
        if not self._server_drains and not self._account.closed:
            logger.info("the control plane drains this worker: %s", state)
        self._server_drains = True
        self._look()

    def _failed(self, error: BaseException) -> None:
        logger.critical("a part of the worker failed", exc_info=error)
        self._fail(ExitCode.INTERNAL)

    def _fail(self, code: ExitCode) -> None:
        self._failure = self._failure or code
        self._account.cancel_all()
        self._look()

    def _look(self) -> None:
        """Wake the main thread if there is something for it to decide."""
        if self._failure is not None or self._server_drains or self._account.closed:
            self._stop.poke()

    # -- the main thread ---------------------------------------------------------------------------

    def _supervise(self) -> ExitCode:
        while not (self._stop.count or self._failure or self._server_drains):
            self._stop.wait(None)
        if self._failure:
            return self._failure
        return self._shut_down()

    def _shut_down(self) -> ExitCode:
        """Stop claiming, give back what is unstarted, drain, finish in time; then abort."""
        give_up_at = self._clock() + self._options.shutdown_grace_ms / 1000
        logger.info("stopping: %s leases held", self._account.held)
        self._account.close()
        self._give_back(self._pool.withdraw())
        stopped = self._drain() == "stopped"
        last_claim_at = self._clock() + LAST_CLAIM_SECONDS
        while self._clock() < give_up_at and self._stop.count < 2 and not self._failure:
            if not self._account.held:
                if stopped or not self._account.asking or self._clock() >= last_claim_at:
                    break
                self._stop.wait(last_claim_at - self._clock())
            else:
                self._stop.wait(give_up_at - self._clock())
        if self._failure:
            return self._failure
        abandoned = self._account.cancel_all()
        if abandoned:
            return self._abort(abandoned)
        if not stopped:
            self._drain()
        logger.info("stopped, nothing left behind")
        return ExitCode.CLEAN

    def _give_back(self, unstarted: Sequence[Held]) -> None:
        for held in unstarted:
            self._account.withdrawn(held)
        self._releases.put(unstarted)

    def _drain(self) -> str:
        """Tell the control plane; it finds out by itself if it cannot be told."""
        try:
            return self._plane.drain()
        except ControlPlaneError as error:
            logger.warning("drain failed: %s", error.code)
            return ""

    def _abort(self, abandoned: Sequence[Held]) -> ExitCode:
        logger.error("stopped with %s leases abandoned; they will expire", len(abandoned))
        for held in abandoned:
            logger.warning("lease abandoned", extra=held.fields)
        until = self._clock() + ABORT_SECONDS
        while self._account.executing and self._clock() < until:
            self._stop.wait(until - self._clock())
        return ExitCode.ABANDONED

    def _take_down(self) -> None:
        """Let every thread end. Executions that do not listen keep theirs; the process ends without them."""
        self._stopping.set()
        self._account.close()
        self._account.wake_watch()
        self._outbox.close()
        self._releases.close()
        self._reports.wake()
        self._pool.close()
        if self._standby:
            self._standby.close()
        self._plane.close()
