"""What the kernel costs: `python -m bench.kernel`, and `--write docs/benchmarks.md` to keep the figures.

Each case is warmed up once and then run in rounds; the table gives median and range, every round counted.
Time and memory are measured in rounds of their own, because counting allocations slows a program down.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.pages import machine, rewrite
from workflows.kernel.definition import CompiledWorkflow, compile_workflow, load_compiled
from workflows.kernel.errors import DefinitionInvalid
from workflows.kernel.graph import Graph
from workflows.kernel.progress import advance, reconcile
from workflows.kernel.states import TaskState

ROUNDS = 5
TASKS = 10_000
RUNS = 1_000
TASKS_PER_RUN = 100
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure; `run` returns what it built, so that memory is counted while it is alive."""

    name: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of each round, and the peak of memory in bytes above the start, of each round."""

    name: str
    seconds: list[float]
    peaks: list[int]


def chain(tasks: int) -> dict[str, Any]:
    """Each task waits for the one before."""
    return _document([{"depends_on": [f"t{number - 1}"] if number else []} for number in range(tasks)])


def fan(tasks: int) -> dict[str, Any]:
    """All tasks but one wait for the first."""
    return _document([{"depends_on": ["t0"] if number else []} for number in range(tasks)])


def _document(fields: list[dict[str, Any]]) -> dict[str, Any]:
    tasks = [
        {"key": f"t{number}", "action": "work", "timeout_ms": 1_000} | field
        for number, field in enumerate(fields)
    ]
    return {"id": "benchmark", "concurrency": 10, "tasks": tasks}


def _refuse(document: dict[str, Any]) -> None:
    try:
        compile_workflow(document)
    except DefinitionInvalid:
        return
    raise AssertionError("A definition of 10,001 tasks was not refused.")


def _start(graph: Graph) -> tuple[list[TaskState], list[int]]:
    """What a run owns: a state and a counter per task."""
    states = [TaskState.WAITING_DEPENDENCIES if degree else TaskState.READY for degree in graph.in_degrees]
    return states, list(graph.in_degrees)


def _unlock(graph: Graph) -> list[int]:
    """The first success of a fan: 9,999 counters go to zero."""
    unmet = list(graph.in_degrees)
    for position, count in advance(graph, succeeded=[0], failed=[]).decrements.items():
        unmet[position] -= count
    assert not any(unmet)
    return unmet


def _half_done(compiled: CompiledWorkflow, *, failed: bool) -> list[TaskState]:
    half = TASKS // 2
    first = TaskState.FAILED if failed else TaskState.SUCCEEDED
    done = [first] + [TaskState.SUCCEEDED] * (0 if failed else half - 1)
    return done + [TaskState.WAITING_DEPENDENCIES] * (len(compiled.graph) - len(done))


def cases() -> list[Case]:
    """The reference project's list, in its order, and what this kernel does besides."""
    long, too_long, small = chain(TASKS), chain(TASKS + 1), chain(TASKS_PER_RUN)
    chained, fanned, shared = compile_workflow(long), compile_workflow(fan(TASKS)), compile_workflow(small)
    calm, broken = _half_done(chained, failed=False), _half_done(chained, failed=True)
    return [
        Case(f"compile {TASKS:,} tasks (a chain)", lambda: compile_workflow(long)),
        Case(f"load the stored text of {TASKS:,} tasks", lambda: load_compiled(chained.canonical)),
        Case(f"refuse {TASKS + 1:,} tasks", lambda: _refuse(too_long)),
        Case(
            f"{RUNS:,} runs of {TASKS_PER_RUN} tasks, one graph",
            lambda: [_start(shared.graph) for _ in range(RUNS)],
        ),
        Case(
            f"{RUNS:,} runs of {TASKS_PER_RUN} tasks, a graph each",
            lambda: [(each := compile_workflow(small), _start(each.graph)) for _ in range(RUNS)],
        ),
        Case(f"unlock {TASKS - 1:,} direct successors", lambda: _unlock(fanned.graph)),
        Case(f"reconcile {TASKS:,} tasks, no failure", lambda: reconcile(chained.graph, calm)),
        Case(f"reconcile {TASKS:,} tasks, a failed ancestor", lambda: reconcile(chained.graph, broken)),
    ]


def measure(case: Case, rounds: int) -> Figures:
    """Warm up, then time the rounds, then weigh as many again."""
    case.run()
    seconds = [_timed(case) for _ in range(rounds)]
    return Figures(case.name, seconds, [_weighed(case) for _ in range(rounds)])


def _timed(case: Case) -> float:
    gc.collect()  # each round starts with nothing to clear up after the one before
    started = time.perf_counter()
    built = case.run()
    elapsed = time.perf_counter() - started
    del built
    return elapsed


def _weighed(case: Case) -> int:
    gc.collect()
    tracemalloc.start()
    built = case.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del built
    return peak


def _span(values: list[float], unit: float, digits: int) -> tuple[str, str]:
    scaled = [value / unit for value in values]
    return (
        f"{statistics.median(scaled):,.{digits}f}",
        f"{min(scaled):,.{digits}f} to {max(scaled):,.{digits}f}",
    )


def rows(figures: list[Figures]) -> list[tuple[str, str, str, str, str]]:
    """Name, median and range of milliseconds, median and range of mebibytes."""
    return [
        (
            each.name,
            *_span(each.seconds, 0.001, 3),
            *_span([float(peak) for peak in each.peaks], MEBIBYTE, 2),
        )
        for each in figures
    ]


HEADINGS = ("case", "ms, median", "ms, range", "MiB, median", "MiB, range")


def comparison(figures: list[Figures]) -> str:
    """One graph for all runs against a graph each."""
    shared, separate = (
        next(each for each in figures if each.name.endswith(ending))
        for ending in ("one graph", "a graph each")
    )
    times = statistics.median(separate.seconds) / statistics.median(shared.seconds)
    weights = statistics.median(separate.peaks) / statistics.median(shared.peaks)
    return f"A graph for each run takes {times:.1f} times the time and {weights:.1f} times the memory."


def report(figures: list[Figures], command: str, rounds: int, load: float) -> str:
    """The section of the page."""
    table = ["| " + " | ".join(HEADINGS) + " |", "| --- | ---: | ---: | ---: | ---: |"]
    table += ["| " + " | ".join(row) + " |" for row in rows(figures)]
    facts = [
        f"- Command: `{command}`",
        f"- Machine: {machine()}; load average {load:.1f} at the start (others may share the machine)",
        f"- Rounds: {rounds} after one warm-up, all counted; memory: peak above the start, in further rounds",
        f"- Date: {time.strftime('%Y-%m-%d')}",
    ]
    return "\n".join([*facts, "", *table, "", comparison(figures)])


def main(arguments: list[str]) -> None:
    """Measure, print, and keep the figures where asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernel", description="What the kernel costs.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds after the warm-up")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="rewrite the marked section of this page")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    console = Console()
    load = os.getloadavg()[0]
    with console.status("measuring"):
        figures = [measure(case, options.rounds) for case in cases()]
    table = Table(*HEADINGS, title=machine())
    for row in rows(figures):
        table.add_row(*row)
    console.print(table)
    console.print(comparison(figures))
    if options.write is not None:
        command = " ".join(["python -m bench.kernel", *arguments])
        rewrite(options.write, "kernel", report(figures, command, options.rounds, load))
        console.print(f"Written to {options.write}.")


if __name__ == "__main__":
    main(sys.argv[1:])
