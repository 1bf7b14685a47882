"""The kernel stands alone: importing all of it brings in neither Django nor the network."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import workflows.kernel

FOLDER = Path(workflows.kernel.__file__).parent
MODULES = [f"workflows.kernel.{module.name}" for module in pkgutil.iter_modules([str(FOLDER)])]


def test_importing_the_kernel_imports_no_framework() -> None:
    program = f"import sys, {', '.join(MODULES)}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert set(MODULES) <= loaded
    assert not loaded & {"django", "rest_framework", "psycopg", "requests", "workflows.models"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_only_the_clock_reads_the_time(path: Path) -> None:
    text = path.read_text()
    reads = [
        word for word in (".now(", ".utcnow(", "time.time", "monotonic(", "import random") if word in text
    ]
    assert reads == ([".now("] if path.name == "clock.py" else [])
