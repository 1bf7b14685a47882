"""Compiled versions, cached per process: many runs share one graph.

A version never changes, so an entry is never stale. The cache is bounded by tasks, not by versions: one
definition of 10,000 tasks weighs as much as a thousand small ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from weakref import WeakValueDictionary

from cachetools import LRUCache

from workflows.kernel.definition import CompiledWorkflow, load_compiled
from workflows.models import WorkflowVersion

CACHED_TASKS = 200_000


@dataclass(frozen=True, slots=True)
class _Cached:
    number: int
    compiled: CompiledWorkflow


_cache: LRUCache[int, _Cached] = LRUCache(
    maxsize=CACHED_TASKS, getsizeof=lambda cached: len(cached.compiled.graph.keys)
)
_lock = Lock()


class _Loading:
    """One version being loaded: the first loads it, and who comes meanwhile waits for that."""

    def __init__(self) -> None:
        self.lock = Lock()


_loading: WeakValueDictionary[int, _Loading] = WeakValueDictionary()


def compiled_version(version_id: int) -> CompiledWorkflow:
    """The compiled definition of a version; one query the first time a process needs it."""
    return _cached(version_id).compiled


def version_number(version_id: int) -> int:
    """The number under which it was published."""
    return _cached(version_id).number


def _cached(version_id: int) -> _Cached:
    with _lock:
        found = _cache.get(version_id)
        if found is not None:
            return found
        loading = _loading.get(version_id)
        if loading is None:
            loading = _loading[version_id] = _Loading()
    with loading.lock:
        with _lock:
            found = _cache.get(version_id)
        if found is None:
            found = _load(version_id)
            with _lock:
                _cache[version_id] = found
    return found


def _load(version_id: int) -> _Cached:
    number, text = WorkflowVersion.objects.values_list("number", "definition").get(pk=version_id)
    return _Cached(number, load_compiled(text))
