"""The edges a task can take, each with its statement; checked against the kernel's table at import."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.kernel.states import TaskState, check_task_move


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from one task state to another.

    ``statement`` names the SQL that guards on ``via[0]``; ``columns`` are its arrays after run and task ids.
    Where an attempt begins or ends with the move, the same statement writes it. An edge with three states
    passes through the middle one within a single transaction.
    """

    statement: str
    via: tuple[TaskState, ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        for source, target in zip(self.via, self.via[1:], strict=False):
            check_task_move(source, target)

    @property
    def source(self) -> TaskState:
        return self.via[0]

    @property
    def target(self) -> TaskState:
        return self.via[-1]


QUEUE = Edge("queue_tasks", (TaskState.READY, TaskState.QUEUED), ("reasons",))
REQUEUE = Edge("requeue_tasks", (TaskState.QUEUED, TaskState.READY), ("reasons",))
CLAIM = Edge(
    "claim_tasks",
    (TaskState.QUEUED, TaskState.RUNNING),
    ("numbers", "worker_ids", "worker_names", "dispatch_ids", "generations", "deadlines"),
)
REFUSE = Edge(
    "refuse_tasks",
    (TaskState.QUEUED, TaskState.RUNNING, TaskState.FAILED),
    ("numbers", "dispatch_ids", "deadlines", "reasons", "error_codes", "error_messages"),
)
SUCCEED = Edge("succeed_tasks", (TaskState.RUNNING, TaskState.SUCCEEDED), ("numbers", "outputs"))
RETRY = Edge(
    "retry_tasks",
    (TaskState.RUNNING, TaskState.WAITING_RETRY),
    ("numbers", "states", "ready_ats", "used", "reasons", "error_codes", "error_messages"),
)
FAIL = Edge(
    "fail_tasks",
    (TaskState.RUNNING, TaskState.FAILED),
    ("numbers", "states", "reasons", "error_codes", "error_messages"),
)
RELEASE = Edge("release_tasks", (TaskState.RUNNING, TaskState.READY), ("numbers", "reasons"))
PROMOTE = Edge("promote_tasks", (TaskState.WAITING_RETRY, TaskState.READY), ("reasons",))

# Flushed in this order. A task takes at most one of them in a transaction, so the order is for reading only.
EDGES = (QUEUE, REQUEUE, CLAIM, REFUSE, SUCCEED, RETRY, FAIL, RELEASE, PROMOTE)
