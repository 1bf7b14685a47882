"""Whole-platform loads through HTTP: one web process, one coordinator, workers as processes of their own.

    python -m bench.load                      every case, three rounds
    python -m bench.load --case 4x16 --rounds 5
    python -m bench.load --write docs/benchmarks.md

Each case starts a platform in a folder of its own, publishes, starts the runs, and waits until every run is
terminal. Time counts from the start of the first run to the end of the last, by the database's clock; this client
asks seldom, because it takes from the same cores. A chain's step is its run's time divided by its tasks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.pages import machine, rewrite

POLL_SECONDS = 0.25
DEADLINE_SECONDS = 300.0
ENVIRONMENT = {"WORKLOAD_WEB_PROCESSES": "1", "WORKLOAD_WEB_THREADS": "64", "WORKLOAD_LOG_LEVEL": "WARNING"}
HEAD = """| case | tasks | workers x slots | tasks/s | seconds | ms a task, first run |
|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Case:
    """One load: what is run, on how many workers of how many slots."""

    name: str
    definitions: Sequence[dict[str, Any]]
    workers: int
    slots: int

    @property
    def tasks(self) -> int:
        return sum(len(definition["tasks"]) for definition in self.definitions)


def _task(key: str, depends_on: Sequence[str] = ()) -> dict[str, Any]:
    return {"key": key, "executor": "mock", "action": "noop", "depends_on": list(depends_on)}


def independent(name: str, count: int) -> dict[str, Any]:
    """A workflow of tasks that do not wait for each other."""
    return {"id": name, "concurrency": 100_000, "tasks": [_task(f"t{i}") for i in range(count)]}


def chain(name: str, count: int) -> dict[str, Any]:
    """A workflow in which each task waits for the one before."""
    tasks = [_task(f"t{i}", [f"t{i - 1}"] if i else []) for i in range(count)]
    return {"id": name, "concurrency": 1, "tasks": tasks}


def layered(name: str, layers: int, width: int) -> dict[str, Any]:
    """Layers of tasks; each waits for three of the layer before."""
    tasks = []
    for layer in range(layers):
        for place in range(width):
            above = [f"l{layer - 1}-{(place + step) % width}" for step in range(3)] if layer else []
            tasks.append(_task(f"l{layer}-{place}", above))
    return {"id": name, "concurrency": 100_000, "tasks": tasks}


def cases() -> list[Case]:
    """The loads of this page."""
    eight = [independent(f"part-{i}", 125) for i in range(8)]
    sizes = ((1, 1), (4, 1), (16, 1), (4, 16))
    return [
        *(Case(f"one-{w}x{s}", [independent("one", 1000)], w, s) for w, s in sizes),
        *(Case(f"eight-{w}x{s}", eight, w, s) for w, s in sizes),
        Case("chain-1x1", [chain("chain", 200)], 1, 1),
        Case("chain-2x16", [chain("chain", 200)], 2, 16),
        Case("one-2x16", [independent("one", 1000)], 2, 16),
        Case("layered-small-2x16", [layered("layered-small", 20, 50)], 2, 16),
        Case("layered-2x16", [layered("layered", 100, 100)], 2, 16),
        Case("layered-4x16", [layered("layered", 100, 100)], 4, 16),
    ]


class Client:
    """The few calls the loads make."""

    def __init__(self, address: str, token: str) -> None:
        import requests

        self.address = f"{address}/api/v1"
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def post(self, path: str, body: Any) -> dict[str, Any]:
        answer = self.session.post(f"{self.address}{path}", json=body, timeout=60)
        answer.raise_for_status()
        return dict(answer.json())

    def get(self, path: str) -> dict[str, Any]:
        answer = self.session.get(f"{self.address}{path}", timeout=60)
        answer.raise_for_status()
        return dict(answer.json())

    def finished(self, run_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Wait until every run is terminal."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        waiting, ended = list(run_ids), {}
        while waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(waiting)} runs are still going after {DEADLINE_SECONDS} s")
            run = self.get(f"/runs/{waiting[0]}")
            if run["finished_at"] is None:
                time.sleep(POLL_SECONDS)
                continue
            ended[waiting.pop(0)] = run
        return [ended[run_id] for run_id in run_ids]


def measure(case: Case, rounds: int, warm_up: int) -> tuple[list[float], list[float]]:
    """Seconds of each round, and milliseconds a task of each first run's own span."""
    from django.db import connections

    from platform_site.access.operations.create_token import create_token
    from platform_site.access.roles import Role
    from platform_site.access.tenants import default_tenant
    from platform_site.launcher.platform import Platform, PlatformOptions

    options = PlatformOptions(
        port=0,
        workers=case.workers,
        worker_kinds=("mock",),
        worker_concurrency=case.slots,
        environment={
            "WORKLOAD_WEB_PROCESSES": "1",
            "WORKLOAD_LOG_LEVEL": "WARNING",
            "WORKLOAD_WEB_THREADS": "64",
        },
    )
    seconds, steps = [], []
    with Platform(options, output=_say, announce=lambda line: _say("platform", line)) as platform:
        token = create_token(tenant=default_tenant(), name=f"bench {case.name}", role=Role.OPERATOR).plain
        connections.close_all()
        client = Client(platform.address, token)
        _await_workers(client, case.workers)
        for number in range(1 - warm_up, rounds + 1):
            names = []
            for definition in case.definitions:
                named = {**definition, "id": f"{definition['id']}-{case.name}-{number}-{os.getpid()}".lower()}
                client.post("/workflows", named)
                names.append(named["id"])
            run_ids = [client.post(f"/workflows/{name}/runs", {})["run_id"] for name in names]
            runs = client.finished(run_ids)
            took = _span(runs)
            bad = [run["state"] for run in runs if run["state"] != "succeeded"]
            if bad:
                raise RuntimeError(f"{case.name}: {bad}")
            if number > 0:
                seconds.append(took)
                steps.append(_step(runs[0], len(case.definitions[0]["tasks"])))
    return seconds, steps


def _await_workers(client: Client, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        items = client.get("/workers")["items"]
        if sum(worker["state"] == "active" for worker in items) >= count:
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError("The workers did not register.")


def _span(runs: Sequence[dict[str, Any]]) -> float:
    """Seconds from the first start to the last end, by the database's clock."""
    began = min(datetime.fromisoformat(run["created_at"]) for run in runs)
    ended = max(datetime.fromisoformat(run["finished_at"]) for run in runs)
    return (ended - began).total_seconds()


def _step(run: dict[str, Any], tasks: int) -> float:
    span = datetime.fromisoformat(run["finished_at"]) - datetime.fromisoformat(run["created_at"])
    return span.total_seconds() * 1000 / tasks


def _say(name: str, line: str) -> None:
    print(f"    {name}: {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--no-warm-up", dest="warm_up", action="store_false", help="count the first round too"
    )
    parser.add_argument("--write", type=Path, help="rewrite the section of this page")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="workload-bench-"))
    os.environ["WORKLOAD_DATA_DIR"] = str(folder)
    os.environ.pop("DATABASE_URL", None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    import django

    django.setup()
    rows = []
    try:
        for case in cases():
            if options.case and case.name not in options.case:
                continue
            seconds, steps = measure(case, options.rounds, int(options.warm_up))
            rates = [case.tasks / took for took in seconds]
            row = (
                f"| {case.name} | {case.tasks} | {case.workers} x {case.slots} | "
                f"{_figures(rates, 0)} | {_figures(seconds, 2)} | {_figures(steps, 1)} |"
            )
            print(row, flush=True)
            rows.append(row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.write:
        rewrite(options.write, "load", _table(rows, options.rounds))


def _figures(values: Sequence[float], digits: int) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _table(rows: Sequence[str], rounds: int) -> str:
    how = (
        f"- Command: `python -m bench.load --rounds {rounds} --write docs/benchmarks.md`\n"
        f"- Machine: {machine()}; all of it on this one: client, web, coordinator, workers and database\n"
        f"- Rounds: {rounds} after one warm-up, all counted; median (range)\n"
        f"- Date: {time.strftime('%Y-%m-%d')}"
    )
    return "\n".join([how, "", HEAD, *rows])


if __name__ == "__main__":
    main()
