"""Every test of an operation leaves a sound system behind, whatever it did or was refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from platform_site.consistency.examination import examine


@pytest.fixture(autouse=True)
def _sound_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.module.__name__.rpartition(".")[2].startswith("test_operation_"):
        assert examine(dispatch_limit=10_000, snapshot=nullcontext).findings == []
