"""The list of settings in the documentation is the list in the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("platform_site", "workflows", "dispatch", "agents", "observability", "workers")
NAME = re.compile(r"\b(?:WORKLOAD_[A-Z_]+|(?:COORDINATOR_)?DATABASE_URL)\b")


def test_every_variable_that_the_code_reads_is_documented_and_no_other() -> None:
    sources = [path.read_text(encoding="utf-8") for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    read = {name for text in sources for name in re.findall(rf'"({NAME.pattern})"', text)}
    documented = set(NAME.findall((ROOT / "docs" / "settings.md").read_text(encoding="utf-8")))
    assert read - documented == set(), "read by the code and not in docs/settings.md"
    assert documented - read == set(), "in docs/settings.md and read by no code"
