"""The launcher's children, with small programs in place of the platform's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from platform_site.launcher.children import Child, Command, Supervisor, describe

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
PARENT = """
import os, sys, time
from platform_site.launcher.children import Child, Command, Supervisor
supervisor = Supervisor()
child = Child(
    Command(name="sleeper", arguments=["/bin/sleep", "600"], environment=os.environ), lambda name, line: None
)
supervisor.add(child)
while child.pid is None:
    time.sleep(0.01)
print(child.pid, flush=True)
time.sleep(600)
"""


class Transcript:
    """What the children said, for a test to wait on."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []
        self._changed = threading.Condition()

    def __call__(self, name: str, line: str) -> None:
        with self._changed:
            self._lines.append((name, line))
            self._changed.notify_all()

    def wait_for(self, text: str, times: int = 1) -> str:
        def found() -> list[str]:
            return [line for _, line in self._lines if text in line]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= times, timeout=20), self._lines
            return found()[-1]


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    made = Supervisor()
    yield made
    made.abort()
    made.stop(made.children)
    made.close()


def python(name: str, program: str, *, grace_seconds: float = 10) -> Command:
    return Command(
        name=name,
        arguments=[sys.executable, "-c", program],
        environment={**os.environ, "PYTHONUNBUFFERED": "1"},
        grace_seconds=grace_seconds,
    )


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)


def test_a_child_is_in_a_session_of_its_own_and_its_lines_carry_its_name(
    supervisor: Supervisor, transcript: Transcript
) -> None:
    supervisor.add(Child(python("one", "import os, time; print(os.getsid(0)); time.sleep(600)"), transcript))
    session = int(transcript.wait_for(""))
    assert session == supervisor.children[0].pid
    assert session != os.getsid(0)


def test_a_killed_child_is_started_again_and_that_is_said(
    supervisor: Supervisor, transcript: Transcript
) -> None:
    child = Child(python("one", "import time; print('up'); time.sleep(600)"), transcript)
    supervisor.add(child)
    transcript.wait_for("up")
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert transcript.wait_for("[ended") == "[ended by SIGKILL; starting it again in 0.5 s]"
    transcript.wait_for("up", times=2)
    assert child.starts == 2
    assert child.pid != first


def test_pauses_grow_for_a_child_that_does_not_stay_up(
    supervisor: Supervisor, transcript: Transcript
) -> None:
    supervisor.add(Child(python("one", "raise SystemExit(3)"), transcript))
    assert transcript.wait_for("[ended", times=1) == "[ended with exit code 3; starting it again in 0.5 s]"
    assert transcript.wait_for("[ended", times=2) == "[ended with exit code 3; starting it again in 1 s]"
    assert transcript.wait_for("[ended", times=3) == "[ended with exit code 3; starting it again in 2 s]"


def test_a_program_that_is_not_there_is_said_and_not_fatal(
    supervisor: Supervisor, transcript: Transcript
) -> None:
    missing = Command(name="one", arguments=["/nowhere/program"], environment=os.environ)
    supervisor.add(Child(missing, transcript))
    transcript.wait_for("FileNotFoundError")
    transcript.wait_for("[ended with exit code 1")


def test_a_stopped_child_stays_stopped(supervisor: Supervisor, transcript: Transcript) -> None:
    child = Child(python("one", "import time; print('up'); time.sleep(600)"), transcript)
    supervisor.add(child)
    transcript.wait_for("up")
    supervisor.stop([child])
    assert child.pid is None
    other = Child(python("two", "print('later'); import time; time.sleep(600)"), transcript)
    supervisor.add(other)
    transcript.wait_for("later")  # the supervisor has made its rounds since
    assert child.starts == 1


def test_a_child_that_is_deaf_to_sigterm_is_killed_after_its_grace(
    supervisor: Supervisor, transcript: Transcript
) -> None:
    child = Child(python("one", STUBBORN, grace_seconds=0.3), transcript)
    supervisor.add(child)
    transcript.wait_for("deaf")
    supervisor.stop([child])
    assert child.pid is None


def test_abort_cuts_the_grace_short(supervisor: Supervisor, transcript: Transcript) -> None:
    child = Child(python("one", STUBBORN, grace_seconds=600), transcript)
    supervisor.add(child)
    transcript.wait_for("deaf")
    stopper = threading.Thread(target=supervisor.stop, args=[[child]])
    stopper.start()
    supervisor.abort()
    stopper.join(timeout=20)
    assert not stopper.is_alive()
    assert child.pid is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child's life to its parent's")
def test_children_die_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    parent.kill()
    parent.communicate()
    wait_until(lambda: not running(child), "the kernel has killed the child")


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("code", "words"), [(0, "with exit code 0"), (-15, "by SIGTERM"), (-200, "by signal 200")]
)
def test_exit_statuses_are_told_in_words(code: int, words: str) -> None:
    assert describe(code) == words
