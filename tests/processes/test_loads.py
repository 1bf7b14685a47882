"""The loads of ``bench.load`` in a short form: every run must succeed, however fast it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("case", ["chain-2x16", "one-2x16", "layered-small-2x16"])
def test_a_load_runs_to_success(case: str) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if "WORKLOAD" not in name and "DATABASE" not in name and "DJANGO" not in name
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", "--case", case, "--rounds", "1", "--no-warm-up"],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {case} |" in done.stdout
