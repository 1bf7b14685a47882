"""Pages that keep figures: each benchmark owns one marked section and rewrites nothing else."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def rewrite(page: Path, name: str, section: str) -> None:
    """Replace what stands between the marks of ``name``; raises ValueError if the page has none."""
    start, end = f"<!-- {name} figures: start -->", f"<!-- {name} figures: end -->"
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} has no section between {start} and {end}.")
    page.write_text(f"{before}{start}\n\n{section}\n\n{end}{after}", encoding="utf-8")


def machine() -> str:
    """What the figures were taken on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor() or "unknown processor",
    )
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores, {system}"
