from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from platform_site.launcher.signals import StopSignals


class Recorder:
    """Stands in for a platform; notes that it was told not to wait."""

    aborted = 0

    def abort(self) -> None:
        self.aborted += 1


@pytest.fixture
def platform() -> Recorder:
    return Recorder()


@pytest.fixture
def signals(platform: Recorder) -> Iterator[StopSignals]:
    made = StopSignals(platform)
    yield made
    made.restore()


@pytest.mark.parametrize("number", StopSignals.NUMBERS)
def test_a_signal_while_starting_ends_the_start(
    signals: StopSignals, platform: Recorder, number: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    assert platform.aborted == 0
    os.kill(os.getpid(), number)
    assert platform.aborted == 1, "the second does not wait for what the first began"


def test_a_signal_while_running_ends_the_wait_and_the_next_aborts(
    signals: StopSignals, platform: Recorder
) -> None:
    def send_when_running() -> None:
        while signals._phase != "running":
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)

    sender = threading.Thread(target=send_when_running)
    sender.start()
    signals.wait()
    sender.join()
    assert signals.stop_requested
    assert platform.aborted == 0
    signals.stopping()
    os.kill(os.getpid(), signal.SIGINT)
    assert platform.aborted == 1


def test_restoring_gives_back_what_was_there(platform: Recorder) -> None:
    before = signal.getsignal(signal.SIGINT)
    StopSignals(platform).restore()
    assert signal.getsignal(signal.SIGINT) is before
