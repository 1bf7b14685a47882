"""The demonstration's course: publish, start, lose a worker half way, see it recover, show the answers."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platform_site.demo.client import DemoClient
from platform_site.demo.screen import Screen
from platform_site.launcher.children import Child

DEFINITION = Path(__file__).resolve().parents[2] / "examples" / "document-index.json"
QUESTIONS = (
    "how are database connections pooled",
    "retry failed requests with exponential backoff",
    "validate data with type hints",
)
POLL_SECONDS = 0.25
SETTLE_SECONDS = 3.0
DEADLINE_SECONDS = 180.0
PACE_MS = 250
"""Pause per document in a shard: long enough to see, short enough to wait for."""


class DemoFailed(Exception):
    """The demonstration did not show what it promises; the message says what was missing."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """A task whose attempt was lost with its worker, and the attempt that succeeded instead."""

    key: str
    lost: Mapping[str, Any]
    succeeded: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """How it ended."""

    run_id: str
    run: Mapping[str, Any]
    answers: Sequence[Mapping[str, Any]]
    report: Mapping[str, Any]
    killed: str
    interruptions: Sequence[Interruption]


class Scenario:
    """One demonstration run. ``stopping`` ends it early."""

    def __init__(
        self,
        client: DemoClient,
        screen: Screen,
        workers: Mapping[str, Child],
        *,
        from_folder: bool,
        stopping: Callable[[], bool],
    ) -> None:
        self._client = client
        self._screen = screen
        self._workers = workers
        self._from_folder = from_folder
        self._stopping = stopping
        self._killed = ""
        self._held: set[str] = set()

    def play(self) -> Result | None:
        """Run it to its end; None if it was stopped. Raises DemoFailed."""
        definition = json.loads(DEFINITION.read_text(encoding="utf-8"))
        version = self._client.publish(definition)
        params = {
            "work": f"demo-{time.strftime('%Y%m%d-%H%M%S')}",
            "source": "." if self._from_folder else "",
            "pace_ms": PACE_MS,
            "questions": list(QUESTIONS),
        }
        run_id = self._client.start(definition["id"], version, params)
        run = self._watch(run_id)
        return None if run is None else self._result(run_id, run)

    def _watch(self, run_id: str) -> dict[str, Any] | None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            tasks = self._client.tasks(run_id)
            self._screen.show(tasks)
            run = self._client.run(run_id)
            if run["finished_at"] is not None:
                self._screen.show(self._client.tasks(run_id))
                return run
            if not self._killed and self._half_way(tasks):
                self._lose_a_worker(run_id)
            if self._stopping():
                return None
            time.sleep(POLL_SECONDS)
        raise DemoFailed(f"The run was not finished after {DEADLINE_SECONDS:.0f} s.")

    @staticmethod
    def _half_way(tasks: Sequence[Mapping[str, Any]]) -> bool:
        done = len([task for task in tasks if task["state"] == "succeeded"])
        return 2 * done >= len(tasks)

    def _lose_a_worker(self, run_id: str) -> None:
        """Kill a worker that certainly holds a lease: it is stopped first, so that nothing can complete."""
        for name, count in self._client.leases_by_worker().items():
            child = self._workers.get(name)
            if child is None or not count:
                continue
            child.signal(signal.SIGSTOP)
            time.sleep(
                0.3
            )  # what it had sent just before is answered by now, and its share read below is final
            held = {task["key"] for task in self._client.tasks(run_id) if _runs_on(task, name)}
            if not held:
                child.signal(signal.SIGCONT)
                continue
            pid = child.pid
            child.signal(signal.SIGKILL)
            self._killed, self._held = name, held
            self._screen.note(
                f"[bold red]Killed {name}[/] (pid {pid}, SIGKILL) while it held "
                f"{len(held)} lease{'' if len(held) == 1 else 's'}: {', '.join(sorted(held))}. "
                "Watch the others take over when the leases run out."
            )
            return

    def _settled_share(self, run_id: str, worker: str) -> set[str]:
        """What the stopped worker holds, once what it had sent just before was taken in: read alike twice."""
        deadline, before = time.monotonic() + SETTLE_SECONDS, set[str]()
        while True:
            held = {task["key"] for task in self._client.tasks(run_id) if _runs_on(task, worker)}
            if held == before or time.monotonic() > deadline:
                return held
            before = held
            time.sleep(POLL_SECONDS)

    def _result(self, run_id: str, run: Mapping[str, Any]) -> Result:
        details = {
            task["key"]: self._client.task(run_id, task["key"])
            for task in self._client.tasks(run_id)
            if task["key"] in self._held or task["key"].startswith("query-") or task["key"] == "report"
        }
        interruptions = [
            found for key in sorted(self._held) if (found := _interruption(key, details.get(key))) is not None
        ]
        if run["state"] != "succeeded":
            raise DemoFailed(f"The run ended {run['state']}.")
        if not self._killed:
            raise DemoFailed("No worker held a lease half way, so none was killed.")
        # A result that was on its way when the worker was stopped may still have been accepted under its lease.
        arrived = {key for key in self._held if len(details[key]["attempt_list"]) == 1}
        missing = self._held - arrived - {one.key for one in interruptions}
        if missing or not interruptions:
            raise DemoFailed(f"These were held by the killed worker, yet not interrupted: {sorted(missing)}.")
        return Result(
            run_id=run_id,
            run=run,
            answers=[
                one["output"]
                for key, one in sorted(details.items())
                if key.startswith("query-") and one["output"]
            ],
            report=details["report"]["output"] or {},
            killed=self._killed,
            interruptions=interruptions,
        )


def _runs_on(task: Mapping[str, Any], worker: str) -> bool:
    return (task["state"], task["worker_name"]) == ("running", worker)


def _interruption(key: str, detail: Mapping[str, Any] | None) -> Interruption | None:
    attempts = detail["attempt_list"] if detail else []
    lost = [one for one in attempts if one["state"] == "interrupted"]
    succeeded = [one for one in attempts if one["state"] == "succeeded"]
    return Interruption(key, lost[0], succeeded[-1]) if lost and succeeded else None
