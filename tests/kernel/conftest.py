"""Hypothesis for the kernel: no deadlines, for the machine may be busy, and failures that can be rerun."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kernel", deadline=None, print_blob=True, max_examples=60)
settings.load_profile("kernel")
