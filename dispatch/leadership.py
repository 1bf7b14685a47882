"""Who coordinates: an advisory lock held by one session, and the fence every write of a leader passes.

The session is this thread's ``default`` connection: it holds the lock, listens, and does every leader
write. So losing the session is losing the lock, and no statement of a leader can travel on another one.
The row ``dispatch_leadership`` names the term (its epoch) and the session; the lock alone decides nothing.
Each term is one epoch, and ``Term.check`` refuses every transaction of an older one.
"""

from __future__ import annotations

import logging
import select
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.conf import settings
from django.db import DatabaseError, Error, connection, transaction

from platform_site import wake
from platform_site.statements import Statements

LOCK = (0x576F726B, 1)
"""Key of the advisory lock; the first half is ours among all users of the database."""
LISTEN = f"LISTEN {wake.COORDINATOR_CHANNEL}"
TERMINATION_WAIT_MS = 1_000

logger = logging.getLogger(__name__)
_sql = Statements("dispatch.sql")


class LeadershipLost(Exception):
    """A later epoch began, or this session is not the one that won: it no longer leads and must step down."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"Epoch {epoch} is no longer this session's.")
        self.epoch = epoch


class LeadershipRowMissing(DatabaseError):
    """The row of the leader vanished while the term began. Not a win; the database is being tampered with."""


class Fence(Protocol):
    """The leader's right to write, which every operation of the coordinator takes."""

    def check(self) -> None:
        """Return if the caller leads, and keep it so until the transaction ends; else LeadershipLost.

        The first statement of its transaction.
        """

    def beat(self) -> None:
        """Say, outside any transaction, that the leader lives; LeadershipLost if it no longer leads."""


@dataclass(frozen=True, slots=True)
class Term:
    """One epoch of this session: the fence of its writes."""

    epoch: int

    def check(self) -> None:
        """The first statement of every leader transaction. On LeadershipLost nothing may be written.

        Takes the row FOR SHARE, so a later epoch, which updates it, waits for this transaction to end. The
        session's process id is compared too: Django reconnects silently, and the new session leads nothing.
        """
        if not connection.in_atomic_block:
            raise RuntimeError("The fence holds only inside a transaction; call check() inside atomic().")
        if not _sql.rows("leadership_check", epoch=self.epoch):
            raise LeadershipLost(self.epoch)

    def beat(self) -> None:
        """Say that the leader lives. Raises LeadershipLost if it no longer leads, and database errors."""
        if _sql.run("leadership_beat", epoch=self.epoch) != 1:
            raise LeadershipLost(self.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipStatus:
    """Who leads, or led last. ``alive``: heard of within the leader timeout, by the database's clock."""

    holder: str
    epoch: int
    since: datetime | None
    beat_at: datetime | None
    alive: bool


def leadership_status(*, timeout: timedelta | None = None) -> LeadershipStatus:
    """Read it in one statement, from any process. Without a row nobody ever led. Raises database errors."""
    limit = timeout or timedelta(milliseconds=settings.WORKLOAD.leader_timeout_ms)
    found = _sql.records("leadership_status", timeout=limit)
    if not found:
        return LeadershipStatus(holder="", epoch=0, since=None, beat_at=None, alive=False)
    return LeadershipStatus(**found[0])


class Leadership:
    """One contender. Everything happens on the calling thread's ``default`` connection; use one thread.

    ``holder`` names the process to people (host and process id); it decides nothing.
    """

    def __init__(self, holder: str, *, leader_timeout: timedelta | None = None) -> None:
        self.holder = holder
        self.leader_timeout = leader_timeout or timedelta(milliseconds=settings.WORKLOAD.leader_timeout_ms)
        self.term: Term | None = None

    def try_acquire(self) -> Term | None:
        """Become the leader if nobody is; end the session of one gone silent. Raises database errors.

        None: another session leads. The caller tries again a little later.
        """
        if not self._lock_taken() and not (self._silent_holder_ended() and self._lock_taken()):
            return None
        self.term = self._begin_term()
        with connection.cursor() as cursor:
            cursor.execute(LISTEN)
        return self.term

    def release(self) -> None:
        """Give up the lock, and with it the session. Raises no database error; fit right after one."""
        term, self.term = self.term, None
        try:
            if term is not None and connection.connection is not None:
                _sql.run("leadership_release", epoch=term.epoch)
                _sql.rows("leadership_unlock", **_lock_key())
        except Error as error:
            # The session is broken or ends below; the server frees its lock either way.
            logger.debug("Leadership was given up by closing the session: %s", error)
        finally:
            connection.close()

    @property
    def status(self) -> LeadershipStatus:
        """Who leads now, whichever process it is. One statement."""
        return leadership_status(timeout=self.leader_timeout)

    def wait(self, timeout: float, *, interrupt: int) -> bool:
        """Wait for a wake-up, ``timeout`` seconds, or input on the descriptor ``interrupt``; whether woken.

        Raises psycopg errors when the session has ended.
        """
        session = connection.connection if self.term is not None else None
        if session is None:
            select.select([interrupt], [], [], timeout)
            return False
        # What arrived during a statement is in the driver's memory, where select cannot see it.
        if list(session.notifies(timeout=0)):
            return True
        ready, _, _ = select.select([session.fileno(), interrupt], [], [], timeout)
        return session.fileno() in ready and bool(list(session.notifies(timeout=0)))

    def _lock_taken(self) -> bool:
        return bool(_sql.rows("leadership_lock", **_lock_key())[0][0])

    def _silent_holder_ended(self) -> bool:
        """A stopped process keeps its session, and with it the lock, for ever; so the server ends it."""
        ended = _sql.records(
            "leadership_end_holder", timeout=self.leader_timeout, wait_ms=TERMINATION_WAIT_MS
        )
        for each in ended:
            logger.warning(
                "The leader %s had been silent since %s; its session was ended.",
                each["holder"],
                each["beat_at"],
            )
        return bool(ended)

    def _begin_term(self) -> Term:
        """A new epoch under this session's name. The UPDATE waits for the last transaction of the old one."""
        try:
            with transaction.atomic(durable=True):
                _sql.run("leadership_row")
                return Term(epoch=self._next_epoch())
        except BaseException:
            connection.close()  # or the lock would be held by a session that does not lead
            raise

    def _next_epoch(self) -> int:
        rows = _sql.rows("leadership_win", holder=self.holder)
        if not rows:
            raise LeadershipRowMissing("The leadership row is missing; the term cannot begin.")
        epoch: int = rows[0][0]
        return epoch


def _lock_key() -> Mapping[str, Any]:
    return {"first": LOCK[0], "second": LOCK[1]}
