"""Which executors a worker has, by the names of the kinds it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from workers.executors.base import Executor
from workers.executors.mock import MockExecutor
from workers.executors.python import PythonExecutor, collect_actions
from workers.options import OptionsInvalid, WorkerOptions

ENTRY_POINT_GROUP = "workload.executors"

ExecutorFactory = Callable[[WorkerOptions], Executor]
"""Makes the executor of a kind for a worker with these options."""


def _mock(options: WorkerOptions) -> Executor:
    return MockExecutor(drills=options.drills)


def _python(options: WorkerOptions) -> Executor:
    return PythonExecutor(collect_actions(options.action_modules))


def build_executors(
    options: WorkerOptions, further: Mapping[str, ExecutorFactory] | None = None
) -> dict[str, Executor]:
    """One executor for each kind named in the options; raises `OptionsInvalid` for a kind nobody provides.

    `further` are handed in by whoever starts the worker; installed packages provide more by entry points in
    the group `workload.executors`, each named as its kind and loading an `ExecutorFactory`.
    """
    factories: dict[str, ExecutorFactory] = {"mock": _mock, "python": _python, **(further or {})}
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    executors = {}
    for kind in options.kinds:
        factory = factories.get(kind)
        if factory is None and kind in installed:
            factory = installed[kind].load()
        if factory is None:
            known = ", ".join(sorted({*factories, *installed}))
            raise OptionsInvalid(f"--kind: no executor for {kind!r}; known kinds: {known}")
        executors[kind] = factory(options)
    return executors
