"""What the viewer sees: a progress bar and a table of tasks while it runs, then what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

MARKS = {
    "succeeded": ("[green]●[/]", "succeeded"),
    "failed": ("[red]✕[/]", "failed"),
    "running": ("[blue]▶[/]", "running"),
    "queued": ("[yellow]◆[/]", "queued"),
    "waiting_retry": ("[yellow]↻[/]", "waiting retry"),
    "ready": ("[dim]○[/]", "ready"),
    "waiting_dependencies": ("[dim]◌[/]", "waiting dependencies"),
    "waiting_approval": ("[magenta]◍[/]", "waiting approval"),
    "skipped": ("[dim]-[/]", "skipped"),
    "canceled": ("[dim]⊘[/]", "canceled"),
}
QUIET_STEP = 10
"""Where nobody watches a terminal: a line each time this many more tasks are done."""


class Screen:
    """A live view on a terminal; plain lines where the output is a file or a log."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            expand=True,
        )
        self._bar = self._progress.add_task("Indexing documents", total=None)
        self._live: Live | None = None
        self._notes: list[str] = []
        self._said = -QUIET_STEP

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(self._progress, console=self.console, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def note(self, sentence: str) -> None:
        """Something that happened, kept in view."""
        self._notes.append(sentence)
        if self._live is None:
            self.console.print(sentence)

    def show(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """The run as it stands."""
        done = sum(task["state"] == "succeeded" for task in tasks)
        self._progress.update(self._bar, completed=done, total=len(tasks))
        if self._live is not None:
            self._live.update(Group(self._progress, _table(tasks), *self._notes[-6:]))
        elif done >= self._said + QUIET_STEP or done == len(tasks) != self._said:
            self._said = done
            self.console.print(f"{done} of {len(tasks)} tasks done")


def _table(tasks: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    table.add_column("Tasks", no_wrap=True)
    table.add_column("Each one", overflow="fold", ratio=1)
    table.add_column("States")
    for group, members in _groups(tasks).items():
        states = Counter(task["state"] for task in members)
        marks = " ".join(MARKS[task["state"]][0] for task in members)
        words = ", ".join(f"{count} {MARKS[state][1]}" for state, count in states.most_common())
        table.add_row(group, marks, words)
    return table


def _groups(tasks: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """By the part of the key before its number: the shards together, the queries together."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        head, _, tail = task["key"].rpartition("-")
        groups.setdefault(head if tail.isdigit() and head else task["key"], []).append(task)
    return groups


def answers_table(answers: Sequence[Mapping[str, Any]]) -> Table:
    """The example queries and their best hits."""
    table = Table(title="Questions asked of the index", expand=True, title_justify="left")
    table.add_column("Question", ratio=2)
    table.add_column("Document", ratio=2)
    table.add_column("Passage", ratio=5)
    for answer in answers:
        hits = answer.get("hits") or []
        for number, hit in enumerate(hits[:2]):
            question = str(answer.get("question", "")) if number == 0 else ""
            table.add_row(escape(question), escape(str(hit.get("title", ""))), escape(_passage(hit)))
        if not hits:
            table.add_row(escape(str(answer.get("question", ""))), "", "nothing found")
    return table


def _passage(hit: Mapping[str, Any]) -> str:
    return " ".join(str(hit.get("snippet", "")).split())[:200]


def interrupted_table(rows: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> Table:
    """Attempts that the lost worker held, and the ones that took over: (task, interrupted, succeeded)."""
    table = Table(title="Attempts that were interrupted", expand=True, title_justify="left")
    for name in ("Task", "Attempt", "Lost with worker", "Then attempt", "Succeeded on worker"):
        table.add_column(name)
    for key, lost, after in rows:
        table.add_row(
            escape(key),
            str(lost["number"]),
            escape(str(lost["worker_name"])),
            str(after["number"]),
            escape(str(after["worker_name"])),
        )
    return table
