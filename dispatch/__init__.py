"""Dispatch: how a ready task reaches one worker, once at a time, and how its result comes back.

A task that is ready is *queued* as a dispatch. A worker *claims* pending dispatches and so holds a *lease* on
each: a promise, limited in time, that nobody else runs the task. It renews its leases by heartbeats, runs the
tasks, and *completes* each lease with a result. The *coordinator* moves what no request moves: it queues,
takes back what was lost, retries, and carries cancellations through.

Who is authoritative for what
    The database: every state, every decision about who holds what, and the only clock. A lease is judged by
    the database's time, read after the row is locked. A worker's clock decides nothing, and so durations
    travel as what remains of them.
    The ledger (``workflows.ledger``): what became of a run, its tasks and attempts. Nothing here writes them.
    This package: dispatches and workers, through ``dispatch.operations`` alone.
    The worker: only how long it dares to trust its last answer. It stops by its own clock before its lease
    ends.
    The coordinator: nothing by itself. Whatever it does it finds in the tables, and any other process could
    have found the same; there is one so that the work is done once, not so that somebody knows.

States of a dispatch
    ::

        pending --claim--> leased --result accepted--> completed
           |                 |----lease or attempt time over, worker gone----> expired
           |                 |----given back unstarted, answer lost----------> released
           +-----------------+----run canceled, nobody accepts it any more---> canceled

    A pending dispatch costs nothing: no attempt, no timeout, no place on a worker. The attempt is born in the
    transaction of the claim. At most one dispatch of a task is open; a unique index says so.

The lease
    It is valid while its dispatch is leased, by that worker, under that token, while the worker is active or
    draining, and while now is before both the lease's expiry and the attempt's deadline. Renewal never goes
    past the deadline. Anything else is ``lease_lost``, and a refused result changes nothing.
    A *token* proves the lease to us. A *generation*, one number from one sequence, grows from lease to
    lease of a task and goes with it to whatever the action talks to: an outside system that compares can
    refuse an older holder, which we cannot do for it. An *idempotency key*, run and task, is the same for
    every attempt.

Answers that are lost
    A call that may lease carries ``claim_no``; the dispatches remember which call leased them. Asked
    again, the claim is a read: the same leases, with the same tokens, which are derived and not stored. A
    result sent again is the first success again; another result for the same lease is a conflict. A lease
    that the worker never learned of is missing from its next heartbeat, which says through which call
    every answer has arrived: it is released at once, without a clock.

Terms of the coordinator
    Leadership is a lock of one database session, and that session does everything the leader does: it
    holds the lock, listens, and writes. So a leader that cannot reach the database does not lead, without
    being told. Each term has a number, the *epoch*, and every transaction of a leader first checks, under
    a lock on that row, that its epoch is the last and its session the one that won. Three accidents cannot
    happen so: a leader that slept through its own deposition writes; a connection that was silently opened
    anew writes without the lock; two terms overlap in one transaction, for the next epoch waits until the
    check is released. A leader says once a pass that it lives. One that stops saying so keeps its lock as
    long as its session, so a standby ends that session after three seconds, by process number and start time.

Waking
    A commit that makes work for somebody is followed by a NOTIFY, outside the transaction, without content,
    thinned out in a burst. Notifications may be merged or lost; polling finds everything within about a
    second. Whoever waits is known to the waker from before it looks, so nothing falls between look and sleep.

Silence
    A worker is *offline* when it was not heard for a while in which it could have been heard. The web
    processes write down when they were there; after a gap in that, everybody's silence counts from anew.
    What expired meanwhile is interrupted without using up a retry. So an outage of ours ends no session
    and fails no task.

Failures, and what happens
    Worker killed: its leases expire, the attempts end *interrupted*, the tasks are retried.
    Worker hangs but heartbeats: the attempt's own deadline ends it, *timed out*.
    Worker cut off: it stops by its own clock before the lease ends; then as killed.
    Worker alive but slow to answer: its result is refused after the lease ended, even if nobody took the
    task.
    Claim or result unanswered: sent again, and answered the same.
    Web process killed: the request's transaction committed or did not; the caller sends it again.
    Coordinator killed: its session ends, a standby leads within its polling interval; nothing was half done.
    Coordinator stopped or cut off: its session is ended after three seconds, and its next write is refused.
    Database away: everything waits; every process comes back by itself, and nobody's silence is counted.
    A run locked for long: passed over by claims and passes, then waited for alone, for a bounded time.

Locks are taken in one order everywhere: the leader's row, runs by id, dispatches by id, approvals, workers by
id, then the rest. Waiting is allowed forwards in that order only. ``docs/protocol.md`` has the transactions.
"""
