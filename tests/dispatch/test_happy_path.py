"""From start to success through the operations, and how many statements that takes."""

from __future__ import annotations

import pytest

from dispatch.models import Dispatch
from dispatch.operations.complete import Outcome
from tests.support.platform import a_run, a_task, a_worker, queue_all
from workflows.models import Attempt, ReadyQueue, Run, StateEvent, Task

pytestmark = pytest.mark.django_db


def test_a_diamond_runs_to_success() -> None:
    worker = a_worker(slots=4)
    run_id = a_run([a_task("a"), a_task("b", "a"), a_task("c", "a"), a_task("d", "b", "c")])
    for expected in (["a"], ["b", "c"], ["d"]):
        assert queue_all() == len(expected)
        leases = worker.claim(4).leases
        assert sorted(lease.task_key for lease in leases) == expected
        assert worker.complete(leases) == [Outcome.APPLIED] * len(leases)
    run = Run.objects.get(pk=run_id)
    assert (run.state, run.tasks_succeeded, run.tasks_total) == ("succeeded", 4, 4)
    assert run.started_at is not None
    assert run.finished_at is not None
    seqs = list(StateEvent.objects.filter(run=run_id).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, run.event_seq + 1))
    assert set(Task.objects.filter(run=run_id).values_list("state", flat=True)) == {"succeeded"}
    assert list(Attempt.objects.filter(run=run_id).values_list("number", "state")) == [(1, "succeeded")] * 4
    assert set(Dispatch.objects.filter(run=run_id).values_list("state", flat=True)) == {"completed"}
    assert not ReadyQueue.objects.filter(run=run_id).exists()
