"""Random workflows through random outcomes, against a model that knows nothing of counters or graphs.

The machine does what the ledger does: it keeps a state and a counter per task and moves them by what the
kernel decides, each move checked against the table. The model keeps the names of the tasks that succeeded
and failed, and derives everything else from the definition, from scratch, every time.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.kernel.strategies import dags, task, workflow
from workflows.kernel.clock import ManualClock
from workflows.kernel.definition import compile_workflow
from workflows.kernel.progress import advance, reconcile, settled_state
from workflows.kernel.retry import FailureKind, RetryAt, decide
from workflows.kernel.states import RunState, TaskState, check_run_move, check_task_move

PICK = st.integers(min_value=0, max_value=10_000)
OPEN_WORK = {TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING_RETRY, TaskState.WAITING_APPROVAL}


class Model:
    """What must be true, said as plainly as possible and by names."""

    def __init__(self, needs: dict[str, list[str]]) -> None:
        self.needs = needs
        self.succeeded: set[str] = set()
        self.failed: set[str] = set()
        self.canceled = False

    def may_start(self, key: str) -> bool:
        return all(name in self.succeeded for name in self.needs[key])

    def doomed(self) -> set[str]:
        """Everything with a failed task above it."""

        @cache
        def below_failure(key: str) -> bool:
            return any(name in self.failed or below_failure(name) for name in self.needs[key])

        return {key for key in self.needs if below_failure(key)}

    def finished(self) -> bool:
        return self.canceled or self.succeeded | self.failed | self.doomed() == set(self.needs)


class Running(RuleBasedStateMachine):
    """One run, moved as the ledger moves it."""

    @initialize(dag=dags(max_tasks=8), attempts=st.integers(0, 3), jitter=st.sampled_from([0.0, 0.5]))
    def begin(self, dag: tuple[list[str], list[list[str]]], attempts: int, jitter: float) -> None:
        keys, depends_on = dag
        retry = {"max_attempts": attempts, "interval_ms": 100, "backoff": "exponential", "jitter": jitter}
        tasks = [
            task(key, depends_on=names, retry=retry | {"non_retryable": ["fatal"]})
            for key, names in zip(keys, depends_on, strict=True)
        ]
        self.compiled = compile_workflow(workflow(*tasks))
        self.graph = self.compiled.graph
        self.model = Model(dict(zip(keys, depends_on, strict=True)))
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.run = RunState.PENDING
        self.states = [
            TaskState.WAITING_DEPENDENCIES if degree else TaskState.READY for degree in self.graph.in_degrees
        ]
        self.unmet = list(self.graph.in_degrees)
        self.used = [0] * len(keys)
        self.due: dict[int, datetime] = {}
        self.unlocked: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()

    # what the ledger does

    def move(self, position: int, target: TaskState) -> None:
        check_task_move(self.states[position], target)
        self.states[position] = target

    def move_run(self, target: RunState) -> None:
        check_run_move(self.run, target)
        self.run = target

    def pick(self, number: int, state: TaskState) -> int:
        found = [position for position, at in enumerate(self.states) if at is state]
        return found[number % len(found)]

    def any_in(self, state: TaskState) -> bool:
        return state in self.states

    def succeed(self, position: int) -> None:
        self.move(position, TaskState.SUCCEEDED)
        self.model.succeeded.add(self.graph.keys[position])
        progress = advance(self.graph, succeeded=[position], failed=[])
        assert progress.skipped == ()
        for successor, count in progress.decrements.items():
            self.unmet[successor] -= count
            if self.unmet[successor] == 0:
                self.move(successor, TaskState.READY)
                self.unlocked[self.graph.keys[successor]] += 1
        self.settle()

    def fail(self, position: int) -> None:
        self.move(position, TaskState.FAILED)
        self.model.failed.add(self.graph.keys[position])
        progress = advance(self.graph, succeeded=[], failed=[position])
        assert progress.decrements == {}
        for below in progress.skipped:
            if not self.states[below].terminal:
                self.move(below, TaskState.SKIPPED)
        self.settle()

    def end_badly(self, position: int, failure: FailureKind, error_code: str, random: float) -> None:
        self.used[position] += 1
        answer = decide(
            self.compiled.definition.tasks[position].retry,
            attempts_used=self.used[position],
            failure=failure,
            error_code=error_code,
            now=self.clock.now(),
            random=random,
        )
        if isinstance(answer, RetryAt):
            self.move(position, TaskState.WAITING_RETRY)
            self.due[position] = answer.at
        else:
            self.fail(position)

    def settle(self) -> None:
        final = settled_state(Counter(self.states))
        if final is not None:
            self.move_run(final)

    # what happens

    @precondition(lambda self: self.any_in(TaskState.READY))
    @rule(number=PICK)
    def queue(self, number: int) -> None:
        if self.run is RunState.PENDING:
            self.move_run(RunState.RUNNING)
        self.move(self.pick(number, TaskState.READY), TaskState.QUEUED)

    @precondition(lambda self: self.any_in(TaskState.QUEUED))
    @rule(number=PICK)
    def claim(self, number: int) -> None:
        position = self.pick(number, TaskState.QUEUED)
        assert self.model.may_start(self.graph.keys[position])
        self.starts[self.graph.keys[position]] += 1
        self.move(position, TaskState.RUNNING)

    @precondition(lambda self: self.any_in(TaskState.QUEUED))
    @rule(number=PICK)
    def orphan(self, number: int) -> None:
        self.move(self.pick(number, TaskState.QUEUED), TaskState.READY)

    @precondition(lambda self: self.any_in(TaskState.RUNNING))
    @rule(number=PICK)
    def complete(self, number: int) -> None:
        self.succeed(self.pick(number, TaskState.RUNNING))

    @precondition(lambda self: self.any_in(TaskState.RUNNING))
    @rule(
        number=PICK,
        failure=st.sampled_from(FailureKind),
        error_code=st.sampled_from(["busy", "fatal"]),
        random=st.floats(0, 1, exclude_max=True),
    )
    def break_down(self, number: int, failure: FailureKind, error_code: str, random: float) -> None:
        self.end_badly(self.pick(number, TaskState.RUNNING), failure, error_code, random)

    @precondition(lambda self: self.any_in(TaskState.RUNNING))
    @rule(number=PICK)
    def release(self, number: int) -> None:
        self.move(self.pick(number, TaskState.RUNNING), TaskState.READY)

    @precondition(lambda self: self.any_in(TaskState.RUNNING))
    @rule(number=PICK)
    def suspend(self, number: int) -> None:
        self.move(self.pick(number, TaskState.RUNNING), TaskState.WAITING_APPROVAL)

    @precondition(lambda self: self.any_in(TaskState.WAITING_APPROVAL))
    @rule(number=PICK, decision=st.sampled_from(["resume", "approve", "deny"]))
    def decide_approval(self, number: int, decision: str) -> None:
        position = self.pick(number, TaskState.WAITING_APPROVAL)
        if decision == "resume":
            self.move(position, TaskState.READY)
        elif decision == "approve":
            self.succeed(position)
        else:
            self.fail(position)

    @rule(milliseconds=st.integers(0, 300))
    def wait(self, milliseconds: int) -> None:
        now = self.clock.advance(timedelta(milliseconds=milliseconds))
        for position in [position for position, at in self.due.items() if at <= now]:
            del self.due[position]
            if self.states[position] is TaskState.WAITING_RETRY:
                self.move(position, TaskState.READY)

    @precondition(lambda self: not self.run.terminal)
    @rule(sure=st.integers(0, 7))
    def cancel(self, sure: int) -> None:
        if sure:  # seldom: a canceled run has no more to show
            return
        self.model.canceled = True
        for position, state in enumerate(self.states):
            if not state.terminal:
                self.move(position, TaskState.CANCELED)
        self.settle()

    # what must hold after every step

    @invariant()
    def nothing_starts_before_its_dependencies(self) -> None:
        for key, state in zip(self.graph.keys, self.states, strict=True):
            if state in OPEN_WORK or state is TaskState.READY or self.starts[key]:
                assert self.model.may_start(key)

    @invariant()
    def every_task_unlocks_exactly_once(self) -> None:
        for key, needs in self.model.needs.items():
            assert self.unlocked[key] == (1 if needs and self.model.may_start(key) else 0)

    @invariant()
    def exactly_the_descendants_of_failures_are_skipped(self) -> None:
        skipped = {
            key for key, at in zip(self.graph.keys, self.states, strict=True) if at is TaskState.SKIPPED
        }
        assert skipped == self.model.doomed()

    @invariant()
    def the_run_settles_exactly_when_every_task_is_terminal(self) -> None:
        assert self.run.terminal == self.model.finished() == all(state.terminal for state in self.states)
        if self.run.terminal:
            was_cut_short = any(state is TaskState.CANCELED for state in self.states)
            expected = RunState.CANCELED if was_cut_short else RunState.SUCCEEDED
            assert self.run is (RunState.FAILED if self.model.failed else expected)

    @invariant()
    def the_retry_budget_is_kept(self) -> None:
        for position, used in enumerate(self.used):
            assert used <= self.compiled.definition.tasks[position].retry.max_attempts

    @invariant()
    def counters_equal_what_the_states_say(self) -> None:
        found = reconcile(self.graph, self.states)
        assert found.problems == ()
        assert found.settled == (self.run if self.run.terminal else None)
        for position, state in enumerate(self.states):
            if state is not TaskState.SKIPPED:
                assert found.unmet[position] == self.unmet[position]


TestRunning: Any = Running.TestCase
TestRunning.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
