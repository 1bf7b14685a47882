"""A claim against a cancel, another claim, its own repeat, and a drain; and what an empty one leaves behind."""

from __future__ import annotations

import pytest

from dispatch.errors import WorkerSessionInvalid
from dispatch.operations.converge_cancellations import converge_cancellation
from tests.races.holding import hold_ready_queue, hold_run, hold_worker, raised
from tests.support.facts import attempt_rows, dispatch_states, task_states, the_run
from tests.support.platform import OpenFence, a_run, a_task, a_worker, queue_all
from tests.support.races import new_session, rival


def test_a_claim_behind_a_cancel_request_starts_nothing() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b")])
    queue_all()
    with (
        hold_ready_queue(run_id) as lock,
        rival(lambda: worker.request_cancel(run_id), name="cancel") as cancel,
    ):
        cancel.wait_until_blocked()  # the intent is written, not committed
        with rival(lambda: worker.claim(2), name="claim") as claim:
            claim.wait_until_blocked()
            lock.release()
            cancel.result()
            assert claim.result().leases == []
    assert attempt_rows(run_id) == []
    assert converge_cancellation(run_id, fence=OpenFence())


def test_a_cancel_request_behind_a_claim_lets_it_start_and_then_ends_it() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a"), a_task("b")])
    queue_all()
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.claim(1), name="claim") as claim:
        claim.wait_until_blocked()
        with rival(lambda: worker.request_cancel(run_id), name="cancel") as cancel:
            cancel.wait_until_blocked()
            lock.release()
            assert len(claim.result().leases) == 1
            cancel.result()
    assert attempt_rows(run_id) == [("a", 1, "running")]
    assert worker.claim(1).leases == []
    assert converge_cancellation(run_id, fence=OpenFence())
    assert attempt_rows(run_id) == [("a", 1, "canceled")]


def test_a_claim_behind_the_convergence_of_a_cancel_starts_nothing() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    worker.request_cancel(run_id)
    with hold_run(run_id) as lock, rival(lambda: converge_cancellation(run_id, fence=OpenFence())) as cancel:
        cancel.wait_until_blocked()
        assert worker.claim(1).leases == []
        lock.release()
        assert cancel.result()
    assert task_states(run_id) == {"a": "canceled"}


def test_two_workers_claim_one_dispatch_once() -> None:
    first, second = a_worker(), a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    with hold_worker(first.identity.id) as lock, rival(lambda: first.claim(1), name="first") as winner:
        winner.wait_until_blocked()
        with rival(lambda: second.claim(1), name="second") as loser:
            loser.wait_until_blocked()
            lock.release()
            assert len(winner.result().leases) == 1
            assert loser.result().leases == []
    assert attempt_rows(run_id) == [("a", 1, "running")]


def test_a_claim_passes_over_a_run_that_another_holds() -> None:
    first, second = a_worker(), a_worker()
    a_run([a_task("a")], name="one")
    other = a_run([a_task("a")], name="two")
    queue_all()
    with hold_worker(first.identity.id) as lock, rival(lambda: first.claim(1)) as winner:
        winner.wait_until_blocked()
        assert [lease.run_id for lease in second.claim(1).leases] == [other]
        lock.release()
        assert len(winner.result().leases) == 1


def test_two_claims_of_one_worker_stay_within_its_slots() -> None:
    worker = a_worker(slots=1)
    a_worker(slots=4)
    runs = [a_run([a_task("a")], name=name) for name in ("one", "two")]
    queue_all()
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.claim(1), name="first") as first:
        first.wait_until_blocked()
        with rival(lambda: worker.claim(1), name="second") as second:
            second.wait_until_blocked()
            lock.release()
            assert len(first.result().leases) + len(second.result().leases) == 1
    assert sorted(state for run_id in runs for state in dispatch_states(run_id)) == ["leased", "pending"]


@pytest.mark.parametrize("others", [0, 1])
def test_a_repeat_that_overtakes_its_first_call_gets_the_same_leases_and_no_more(others: int) -> None:
    """With work elsewhere the repeat holds it already when it finds that its call was answered."""
    worker = a_worker()
    a_run([a_task("a")], name="one")
    for number in range(others):
        a_run([a_task("a")], name=f"other-{number}")
    queue_all()
    with (
        hold_worker(worker.identity.id) as lock,
        rival(lambda: worker.claim(1, claim_no=1), name="first") as first,
    ):
        first.wait_until_blocked()
        with rival(lambda: worker.claim(1, claim_no=1), name="repeat") as repeat:
            repeat.wait_until_blocked()
            lock.release()
            answered, again = first.result().leases, repeat.result().leases
    assert [lease.token for lease in again] == [lease.token for lease in answered]
    assert len(answered) == 1


def test_a_claim_behind_a_drain_is_refused() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    with hold_worker(worker.identity.id) as lock, rival(worker.drain, name="drain") as drain:
        drain.wait_until_blocked()
        with rival(raised(lambda: worker.claim(1)), name="claim") as claim:
            claim.wait_until_blocked()
            lock.release()
            assert drain.result() == "stopped"
            assert isinstance(claim.result(), WorkerSessionInvalid)
    assert task_states(run_id) == {"a": "queued"}


def test_a_drain_behind_a_claim_finds_its_lease() -> None:
    worker = a_worker()
    run_id = a_run([a_task("a")])
    queue_all()
    with hold_worker(worker.identity.id) as lock, rival(lambda: worker.claim(1), name="claim") as claim:
        claim.wait_until_blocked()
        with rival(worker.drain, name="drain") as drain:
            drain.wait_until_blocked()
            lock.release()
            assert len(claim.result().leases) == 1
            assert drain.result() == "draining"
    assert task_states(run_id) == {"a": "running"}


def test_an_empty_claim_of_a_busy_run_locks_nothing_and_asks_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = [a_worker(slots=1024) for _ in range(10)]
    run_id = a_run([a_task(f"t{number}") for number in range(10_000)])
    assert queue_all() == 10_000
    with hold_run(run_id), new_session() as observer:
        with rival(lambda: workers[0].claim(1024)) as claim:
            claim.wait_until_blocked()
            with observer.transaction():
                locked = observer.execute(
                    "SELECT id FROM dispatch_dispatch WHERE state = 'pending' FOR UPDATE NOWAIT"
                )
                assert locked.rowcount == 10_000
            observer.execute("SELECT 1 FROM dispatch_worker FOR UPDATE NOWAIT")
            monkeypatch.setattr("dispatch.operations.claim.CONTENDED_WAIT_MS", 50)
            claimed = workers[1].claim(1024)
            assert (claimed.leases, claimed.retry_after_ms) == ([], 50)
            claim_gave_up = raised(lambda: claim.result(timeout=8))()
        assert getattr(claim_gave_up, "retry_after_ms", None) == 50
    assert len(workers[1].claim(1024).leases) == 1024
    assert the_run(run_id).tasks_running == 1024
