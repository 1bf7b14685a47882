"""Why a run or a task that is not finished waits, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from platform_site.console.badges import Shape, Tone
from platform_site.console.formatting import duration, plural
from workflows.kernel.states import STATE_HELP, TaskState
from workflows.queries import RunDetail, TaskDetail, TaskRow


@dataclass(frozen=True, slots=True)
class Reason:
    """A finding: what waits (`subject`), for what (`text`), and the task it leads to, if it is one."""

    tone: Tone
    shape: Shape
    subject: str
    text: str
    task_key: str = ""
    code: str = ""


def run_reasons(run: RunDetail, retries: Sequence[TaskRow], now: datetime) -> tuple[Reason, ...]:
    """Why a run is not done yet; `retries` are the tasks due first. Empty for a finished run."""
    if run.terminal:
        return ()
    found = []
    if run.cancel_requested_at is not None:
        ago = duration(now - run.cancel_requested_at)
        found.append(Reason("wait", "clock", "canceling", f"asked for {ago} ago; what runs is being stopped"))
    found.extend(_retry(task, now) for task in retries)
    more = run.counts[TaskState.WAITING_RETRY] - len(retries)
    if more > 0 and retries:
        found.append(Reason("wait", "clock", plural(more, "more task"), "retry later"))
    found.extend(_held_back(run))
    return tuple(found)


def _retry(task: TaskRow, now: datetime) -> Reason:
    due = task.ready_at
    when = f"retries in {duration(due - now)}" if due is not None and due > now else "is due for its retry"
    return Reason(
        "wait", "clock", task.key, f"{when}, as attempt {task.attempts + 1}", task.key, task.error_code
    )


def _held_back(run: RunDetail) -> list[Reason]:
    counts, found = run.counts, []
    ready, queued = counts[TaskState.READY], counts[TaskState.QUEUED]
    if queued:
        text = "queued, until a worker that takes them has a free slot"
        found.append(Reason("wait", "dot", plural(queued, "task"), text))
    if ready:
        full = queued + counts[TaskState.RUNNING] >= run.concurrency
        text = (
            f"ready, but all {plural(run.concurrency, 'place')} of this run are taken"
            if full
            else "ready, until the coordinator queues them"
        )
        found.append(Reason("mute", "dot", plural(ready, "task"), text))
    if counts[TaskState.WAITING_APPROVAL]:
        tasks = plural(counts[TaskState.WAITING_APPROVAL], "task")
        found.append(Reason("hold", "bars", tasks, "until a person decides"))
    if counts[TaskState.WAITING_DEPENDENCIES]:
        tasks = plural(counts[TaskState.WAITING_DEPENDENCIES], "task")
        found.append(Reason("mute", "dash", tasks, "until the tasks before them succeed"))
    return found


def task_reason(task: TaskDetail, now: datetime) -> str:
    """One sentence: what a task that is not running waits for. Empty for a running or finished task."""
    if task.state.terminal or task.state is TaskState.RUNNING:
        return ""
    if task.state is TaskState.WAITING_RETRY:
        return f"It {_retry(task, now).text}."
    if task.state is TaskState.WAITING_DEPENDENCIES:
        return f"It starts when {plural(task.unmet_dependencies, 'more task')} before it succeeded."
    return STATE_HELP[TaskState][task.state].moved_by
