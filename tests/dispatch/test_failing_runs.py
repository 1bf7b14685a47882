"""One run that fails whatever is done to it: it is found, named and left out, and everybody else gets on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import DatabaseError, connection

from dispatch.leadership import LeadershipLost
from dispatch.operations.batches import MOST_FAILING
from dispatch.operations.claim import Lease
from dispatch.operations.complete import Outcome
from dispatch.operations.converge_cancellations import converge_cancellations
from dispatch.operations.faults import Faults
from dispatch.operations.promote_retries import promote_retries
from dispatch.operations.queue_ready import queue_ready
from dispatch.operations.reap import reap
from dispatch.operations.requeue_orphans import requeue_orphans
from dispatch.operations.skips import Skips
from dispatch.statements import sql
from platform_site.statements import UnexpectedRowCount
from tests.support.aging import control_plane_there, let_leases_expire, let_retries_be_due
from tests.support.facts import everything_of, task_states, the_run
from tests.support.platform import OpenFence, TestWorker, a_task, a_worker, published, queue_all, started

pytestmark = pytest.mark.django_db

AGAIN = {"max_attempts": 2, "interval_ms": 60_000}
CUT = "57014"
"""SQLSTATE of a statement that took too long."""
VIOLATED = "23514"
REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    code text := (SELECT sqlstate FROM poisoned WHERE id = NEW.run_id);
BEGIN
    IF code IS NOT NULL THEN
        RAISE EXCEPTION 'poisoned' USING ERRCODE = code;
    END IF;
    RETURN NEW;
END $$
"""


def poison(*run_ids: UUID, sqlstate: str = VIOLATED) -> None:
    """From now on nothing of these runs can be written."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("CREATE TABLE poisoned (id uuid, sqlstate text)")
        cursor.execute("INSERT INTO poisoned SELECT unnest(%s::uuid[]), %s", [list(run_ids), sqlstate])
        cursor.execute(REFUSE)
        cursor.execute(
            "CREATE TRIGGER poison BEFORE INSERT ON workflows_stateevent FOR EACH ROW EXECUTE FUNCTION refuse()"
        )


def heal() -> None:
    """Everything can be written again."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("DELETE FROM poisoned")


def _to_queue(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    a_worker(slots=1024)
    published("flow", [a_task("a")])
    ids = [started("flow") for _ in range(runs)]
    return ids, lambda skips: queue_ready(fence=OpenFence(), dispatch_limit=10_000, skips=skips), "ready"


def _to_promote(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    worker = a_worker(slots=1024)
    published("flow", [a_task("a", retry=AGAIN)])
    ids = [started("flow") for _ in range(runs)]
    queue_all()
    worker.complete(worker.claim(1024).leases, kind="temporary_failure", error_code="busy")
    for run_id in ids:
        let_retries_be_due(run_id)
    return ids, lambda skips: promote_retries(fence=OpenFence(), skips=skips), "waiting_retry"


def _to_requeue(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    worker = a_worker(slots=1024)
    published("flow", [a_task("a")])
    ids = [started("flow") for _ in range(runs)]
    queue_all()
    worker.drain()
    return ids, lambda skips: requeue_orphans(fence=OpenFence(), skips=skips), "queued"


def _to_reap(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    control_plane_there()
    worker = a_worker(slots=1024)
    published("flow", [a_task("a", retry=AGAIN)])
    ids = [started("flow") for _ in range(runs)]
    queue_all()
    leases = worker.claim(1024).leases
    let_leases_expire(leases)
    return ids, lambda skips: reap(fence=OpenFence(), skips=skips), "running"


def _to_cancel(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    worker = a_worker(slots=1024)
    published("flow", [a_task("a")])
    ids = [started("flow") for _ in range(runs)]
    for run_id in ids:
        worker.request_cancel(run_id)

    def all_of_them(skips: Skips) -> int:
        return sum(converge_cancellations(fence=OpenFence(), skips=skips) for _ in range(runs))

    return ids, all_of_them, "ready"


def _to_cancel_queued(runs: int) -> tuple[list[UUID], Callable[[Skips], int], str]:
    worker = a_worker()
    published("flow", [a_task("a")])
    ids = [started("flow") for _ in range(runs)]
    queue_all()
    worker.request_cancel(ids[0])
    return ids, lambda skips: converge_cancellations(fence=OpenFence(), skips=skips), "queued"


DUTIES = [_to_queue, _to_promote, _to_requeue, _to_reap, _to_cancel]


@pytest.mark.parametrize("sqlstate", [VIOLATED, CUT])
@pytest.mark.parametrize("prepare", DUTIES, ids=lambda prepare: prepare.__name__.strip("_"))
def test_a_duty_finds_the_run_at_fault_names_it_once_and_does_the_others(
    prepare: Callable[[int], tuple[list[UUID], Callable[[Skips], int], str]],
    sqlstate: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs, duty, before = prepare(7)
    bad = runs[2]
    poison(bad, sqlstate=sqlstate)
    skips = Skips()
    skips.begin_pass()
    assert duty(skips) == 6
    assert [run_id for run_id in runs if task_states(run_id) == {"a": before}] == [bad]
    for _ in range(4):
        assert duty(skips) == 0
        skips.begin_pass()
    told = [record for record in caplog.records if str(bad) in record.getMessage()]
    assert [record.levelno for record in told] == [logging.ERROR]
    heal()
    for _ in range(10):
        skips.begin_pass()
        duty(skips)
    assert task_states(bad) != {"a": before}


def test_a_run_that_failed_is_left_out_twice_as_long_each_time() -> None:
    [bad], duty, _ = _to_queue(1)
    poison(bad)
    skips, tried = Skips(), []
    for number in range(40):
        skips.begin_pass()
        if bad not in skips.left_out("queue_ready"):
            tried.append(number)
        duty(skips)
    assert tried == [0, 1, 3, 7, 15, 31]


def test_when_many_runs_fail_the_duty_fails_and_the_next_passes_get_past_them() -> None:
    runs, duty, _ = _to_queue(10)
    poison(*runs[:5])
    skips = Skips()
    skips.begin_pass()
    with pytest.raises(DatabaseError, match="poisoned"):
        duty(skips)
    assert len(skips.left_out("queue_ready")) == MOST_FAILING
    for _ in range(3):
        skips.begin_pass()
        try:
            duty(skips)
        except DatabaseError:
            continue
    assert [task_states(run_id) for run_id in runs[5:]] == [{"a": "queued"}] * 5


def test_trouble_of_the_database_is_no_fault_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    [bad], _, _ = _to_queue(1)
    poison(bad)

    class Lost(OpenFence):
        def beat(self) -> None:
            raise LeadershipLost(1)

    skips = Skips()
    with pytest.raises(LeadershipLost):
        queue_ready(fence=Lost(), dispatch_limit=10, skips=skips)
    assert skips.left_out("queue_ready") == []
    assert the_run(bad).revision == 0
    assert caplog.records == []


@pytest.mark.parametrize("sqlstate", [VIOLATED, CUT])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_claim_gets_past_the_run_at_fault_and_names_it_once(
    slots: int, sqlstate: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = a_worker(slots=16)
    published("flow", [a_task("a")])
    bad, *others = [started("flow") for _ in range(5)]
    queue_all()
    poison(bad, sqlstate=sqlstate)
    got = [lease.run_id for _ in range(5) for lease in worker.claim(slots).leases]
    assert sorted(got) == sorted(others)
    assert [record.levelno for record in caplog.records if str(bad) in record.getMessage()] == [logging.ERROR]


def test_what_failed_is_claimed_again_after_a_while() -> None:
    clock = [0.0]
    faults = Faults(seconds=30, clock=lambda: clock[0])
    bad, good = UUID(int=1), UUID(int=2)
    faults.note(bad, RuntimeError("a bug"))
    assert faults.without([bad, good]) == [good]
    clock[0] = 31.0
    assert faults.without([bad, good]) == [bad, good]


def test_a_claim_that_fails_on_every_run_gives_up_after_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = a_worker(slots=64)
    published("flow", [a_task("a")])
    runs = [started("flow") for _ in range(30)]
    queue_all()
    poison(*runs)
    noted: list[UUID] = []
    monkeypatch.setattr(Faults, "note", lambda _self, run_id, _error: noted.append(run_id))
    claimed = worker.claim(30)
    assert (claimed.leases, claimed.retry_after_ms is not None) == ([], True)
    assert len(noted) <= 9


def _three_results() -> tuple[TestWorker, list[Lease]]:
    worker = a_worker()
    published("flow", [a_task("a")])
    for _ in range(3):
        started("flow")
    queue_all()
    return worker, worker.claim(3).leases


@pytest.mark.parametrize("at_fault", [0, 2])
def test_results_of_other_runs_are_settled_beside_the_run_at_fault(at_fault: int) -> None:
    worker, leases = _three_results()
    leases.sort(key=lambda lease: lease.run_id)
    poison(leases[at_fault].run_id)
    expected = [Outcome.APPLIED] * 3
    expected[at_fault] = Outcome.RETRY
    assert worker.complete(leases) == expected


def test_results_of_which_nothing_committed_are_an_error() -> None:
    worker, leases = _three_results()
    poison(*(lease.run_id for lease in leases))
    with pytest.raises(DatabaseError, match="poisoned"):
        worker.complete(leases)
    with pytest.raises(DatabaseError, match="poisoned"):
        worker.complete(leases[:1])


def _touch_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sql.texts, name, f"{sql.texts[name]} AND false")


def test_a_release_that_touches_too_few_rows_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, leases = _three_results()
    _touch_nothing("release_dispatches", monkeypatch)
    before = everything_of(leases[0].run_id)
    with pytest.raises(UnexpectedRowCount):
        worker.release(leases[0])
    assert everything_of(leases[0].run_id) == before


def test_a_refusal_that_touches_too_few_rows_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = a_worker()
    nowhere = {"x": {"$from": "tasks.a.output.nowhere"}}
    published("flow", [a_task("a"), a_task("b", "a", input=nowhere)])
    run_id = started("flow")
    queue_all()
    worker.complete(worker.claim().leases, output={})
    queue_all()
    _touch_nothing("cancel_dispatches", monkeypatch)
    before = everything_of(run_id)
    assert worker.claim().leases == []
    assert everything_of(run_id) == before


@pytest.mark.parametrize(
    ("prepare", "statement"),
    [
        (_to_requeue, "cancel_dispatches"),
        (_to_reap, "expire_dispatches"),
        (_to_cancel_queued, "cancel_dispatches_of_runs"),
    ],
)
def test_a_duty_that_touches_too_few_rows_commits_nothing(
    prepare: Callable[[int], tuple[list[UUID], Callable[[Skips], int], str]],
    statement: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [run_id], duty, _ = prepare(1)
    _touch_nothing(statement, monkeypatch)
    before = everything_of(run_id)
    assert duty(Skips()) == 0
    assert everything_of(run_id) == before
