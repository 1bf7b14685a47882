"""Compiled versions: loaded once, however many ask at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.platform import a_definition, a_task
from workflows import compiled
from workflows.kernel.definition import compile_workflow

NOBODYS = -1
"""A version id that no test stores."""


def test_many_who_need_a_version_at_once_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    second = threading.Event()
    asked = threading.Barrier(4)
    loaded = compiled._Cached(7, compile_workflow(a_definition("flow", [a_task("a")])))

    def load(version_id: int) -> compiled._Cached:
        loads.append(version_id)
        if len(loads) > 1:
            second.set()
        second.wait(0.3)  # time for the others to come and load it too, if nothing keeps them
        return loaded

    def ask() -> int:
        asked.wait(10)
        return compiled.version_number(NOBODYS)

    monkeypatch.setattr(compiled, "_load", load)
    try:
        with ThreadPoolExecutor(4) as threads:
            numbers = [future.result(10) for future in [threads.submit(ask) for _ in range(4)]]
    finally:
        compiled._cache.pop(NOBODYS, None)
    assert numbers == [7] * 4
    assert loads == [NOBODYS]
    assert NOBODYS not in compiled._loading


def test_a_load_that_fails_is_tried_again_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = compiled._Cached(7, compile_workflow(a_definition("flow", [a_task("a")])))
    answers: list[compiled._Cached | Exception] = [ConnectionError("away"), loaded]

    def load(_version_id: int) -> compiled._Cached:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(compiled, "_load", load)
    try:
        with pytest.raises(ConnectionError):
            compiled.version_number(NOBODYS)
        assert compiled.version_number(NOBODYS) == 7
    finally:
        compiled._cache.pop(NOBODYS, None)
