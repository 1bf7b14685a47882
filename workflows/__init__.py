"""Workflows, runs and their history: what was asked, what happened, what is next.

Objects
    A *workflow* is a name; each published *version* of it is an immutable definition. A *run* pins one
    version and owns a *task* row per task of it; each try of a task is an *attempt*. A *state event*
    tells of one move of a run, a task or an attempt.

Who writes what
    ``workflows.ledger`` is the only writer of the state, revision and counters of runs, tasks and
    attempts, of their events, and of the ready queue. ``workflows.operations`` decide; each is one
    transaction. Everybody reads through ``workflows.queries``.

Invariants in words
    A run's revision grows by one in every transaction that changes it, and its events are numbered
    from 1 without a gap, in that same transaction. A task starts only after the successes of all its
    dependencies are committed. Terminal states never change. A run is terminal exactly when all its
    tasks are. Counters stored on a run equal what its task rows say.

This app does not know how tasks are dispatched; ``dispatch`` stands on it, never the reverse.
"""
