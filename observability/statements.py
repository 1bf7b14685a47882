"""The statements of the instruments, from their files (`observability/sql`)."""

from __future__ import annotations

from importlib import resources


def _text(name: str) -> str:
    return resources.files("observability.sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


STORE_SNAPSHOT = _text("store_snapshot")
READ_SNAPSHOT = _text("read_snapshot")
