"""The bounded pool: own threads, started when needed; the hand-over never holds more than the slots."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Sequence

from workers.account import Held


class PoolFull(RuntimeError):
    """More was handed over than there are slots: the account of slots is broken."""


class Pool:
    """At most `size` threads; `size` bounds what is executing and handed over together.

    `run` executes a lease and returns its result (None: nothing to submit); `done` takes the result once the
    thread is counted as free, so that whatever `done` sets off may hand over the next lease.
    """

    def __init__(
        self,
        size: int,
        run: Callable[[Held], str | None],
        done: Callable[[Held, str | None], None],
        *,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._size = size
        self._run = run
        self._done = done
        self._failed = failed
        self._condition = threading.Condition()
        self._waiting: deque[Held] = deque()
        self._executing = 0
        self._threads = 0
        self._closed = False

    def hand_over(self, leases: Sequence[Held]) -> None:
        """Start these as soon as threads are free, which is at once while the account of slots is right."""
        with self._condition:
            if len(self._waiting) + self._executing + len(leases) > self._size:
                raise PoolFull(
                    f"{len(leases)} leases handed over, {self._executing} of {self._size} slots busy"
                )
            self._waiting.extend(leases)
            missing = len(self._waiting) - (self._threads - self._executing)
            for _ in range(max(0, missing)):
                self._threads += 1
                # Log fields bound by whoever hands over (the worker's id) hold in the new thread too.
                work = contextvars.copy_context().run
                name = f"slot-{self._threads}"
                threading.Thread(target=work, args=(self._work,), name=name, daemon=True).start()
            self._condition.notify(len(leases))

    def withdraw(self) -> list[Held]:
        """Take back everything that no thread has started."""
        with self._condition:
            unstarted = list(self._waiting)
            self._waiting.clear()
            return unstarted

    @property
    def unstarted(self) -> int:
        """Leases handed over that no thread has started yet (a hint, read without the lock)."""
        return len(self._waiting)

    def close(self) -> None:
        """End the threads that have nothing to do; those that execute end after it."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _work(self) -> None:
        try:
            while (held := self._next()) is not None:
                result = self._run(held)
                with self._condition:
                    self._executing -= 1
                self._done(held, result)
        except BaseException as error:  # noqa: BLE001  # reported; a slot must not vanish
            self._failed(error)

    def _next(self) -> Held | None:
        with self._condition:
            while not self._waiting:
                if self._closed:
                    return None
                self._condition.wait()
            self._executing += 1
            return self._waiting.popleft()
