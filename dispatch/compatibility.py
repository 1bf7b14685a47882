"""Which worker takes which task: one predicate, used by enqueue, orphan check, claim and explain. Pure.

A *pool* is the set of active workers with equal kinds, tenant scope and labels; a *class* of tasks is what
they are chosen by: tenant, executor kind and required labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acceptor:
    """What a worker, or every worker of a pool, offers. ``tenant_id`` None serves every tenant."""

    kinds: frozenset[str]
    tenant_id: int | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """What a task class asks for."""

    id: int
    tenant_id: int
    executor_kind: str
    requires: Mapping[str, str]

    @classmethod
    def from_row(cls, class_id: int, tenant_id: int, executor_kind: str, requires: str) -> ClassFacts:
        """From a row of raw SQL, where jsonb arrives as its text."""
        return cls(class_id, tenant_id, executor_kind, json.loads(requires))


def accepts(worker: Acceptor, task_class: ClassFacts) -> bool:
    """Whether the worker may run tasks of the class."""
    return (
        task_class.executor_kind in worker.kinds
        and worker.tenant_id in (None, task_class.tenant_id)
        and all(worker.labels.get(name) == value for name, value in task_class.requires.items())
    )


def accepted_ids(worker: Acceptor, classes: Iterable[ClassFacts]) -> list[int]:
    """The ids of the classes that the worker accepts."""
    return [task_class.id for task_class in classes if accepts(worker, task_class)]
