"""Every race leaves a sound system behind, whoever won."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from platform_site.consistency.examination import examine
from tests.support.aging import control_plane_there


@pytest.fixture(autouse=True)
def _sound_afterwards(transactional_db: None) -> Iterator[None]:
    control_plane_there()
    yield
    assert examine(dispatch_limit=10_000).findings == []


@pytest.fixture(autouse=True)
def _patient_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that waits for a run waits until the test lets go of it."""
    monkeypatch.setattr("dispatch.operations.claim.CONTENDED_WAIT_MS", 5_000)
    monkeypatch.setattr("dispatch.operations.complete.LOCK_TIMEOUT_MS", 5_000)
    monkeypatch.setattr("dispatch.operations.converge_cancellations.LOCK_TIMEOUT_MS", 5_000)
