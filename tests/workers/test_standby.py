"""Leases survive an action that holds the interpreter, but not a worker that is dead or stopped."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.workers.conftest import Spawn
from tests.workers.control_plane import ControlPlaneStandIn
from workers.process import ExitCode

ACTIONS = """
import ctypes
from pydantic import BaseModel
from workers.actions import action

class Hold(BaseModel):
    microseconds: int

@action("hold.interpreter", input=Hold)
def hold(task, context):
    ctypes.PyDLL(None).usleep(task.microseconds)  # unlike CDLL, PyDLL keeps the interpreter's lock
    return "held"
"""


FLAGS = ("--action-module", "holding", "--kind", "python", "--kind", "mock")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a module of actions."""
    made = tmp_path_factory.mktemp("actions")
    (made / "holding.py").write_text(ACTIONS)
    return str(made)


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> int:
    process.send_signal(number)
    process.communicate(timeout=20)
    return process.returncode


@pytest.mark.processes
def test_leases_survive_an_action_that_holds_the_interpreter(
    plane: ControlPlaneStandIn, spawn: Spawn, folder: str
) -> None:
    plane.heartbeat_ms, plane.lease_ms = 500, 2_000
    beside = plane.add("beside", {"sleep_ms": 5_500})
    process = spawn(*FLAGS, PYTHONPATH=folder)
    plane.wait(lambda: len(plane.made("heartbeat")) >= 4, "heartbeats, so that the standby is up")
    held = plane.add("held", {"microseconds": 3_500_000}, kind="python", action="hold.interpreter")
    plane.wait(lambda: held.state == "completed" and beside.state == "completed", "both results")
    assert (held.attempt, beside.attempt) == (1, 1)
    assert end(process) == ExitCode.CLEAN


@pytest.mark.processes
def test_without_the_standby_they_do_not(plane: ControlPlaneStandIn, spawn: Spawn, folder: str) -> None:
    """The proof that the action above does hold the interpreter."""
    plane.heartbeat_ms, plane.lease_ms = 300, 1_000
    process = spawn(*FLAGS, "--no-standby", PYTHONPATH=folder)
    held = plane.add("held", {"microseconds": 3_000_000}, kind="python", action="hold.interpreter")
    plane.wait(lambda: plane.made("heartbeat"), "a heartbeat after the action")
    assert plane.made("heartbeat")[0].at - plane.made("claims")[0].at > 2
    assert held.state != "completed"
    assert end(process) == ExitCode.CLEAN


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stopped_worker_sends_no_heartbeats(
    plane: ControlPlaneStandIn, spawn: Spawn, folder: str, number: signal.Signals
) -> None:
    plane.heartbeat_ms, plane.lease_ms = 200, 1_000
    dispatch = plane.add("long", {"sleep_ms": 60_000})
    process = spawn(*FLAGS, PYTHONPATH=folder)
    plane.wait(lambda: len(plane.made("heartbeat")) >= 5, "heartbeats, so that the standby is up")
    process.send_signal(number)
    with plane.changed:
        beaten_again = plane.changed.wait_for(
            lambda: plane.made("heartbeat")[-1].at > dispatch.expires_at, timeout=2.5
        )
    assert not beaten_again
    assert not plane._valid(dispatch, dispatch.token), "the lease has expired"
    assert end(process, signal.SIGKILL) == -signal.SIGKILL
