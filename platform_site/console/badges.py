"""One table for how a state looks: shape, word and colour. Pages, graph, e-mail and command line read it.

States are given by their stored text, because this package imports no domain app; tests hold the table
against the enums, so a state without a look fails the build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Tone = Literal["ok", "run", "wait", "bad", "hold", "mute"]
Shape = Literal["check", "half", "clock", "cross", "bars", "dash", "slash", "dot"]

#: Outlines in a box of 12 by 12, drawn with the stroke of the text's colour. Filled parts say so by `fill`.
OUTLINES: Mapping[Shape, str] = {
    "check": '<path d="M2.5 6.5 5 9l4.5-6"/>',
    "half": '<circle cx="6" cy="6" r="4"/><path d="M6 2a4 4 0 0 0 0 8z" fill="currentColor" stroke="none"/>',
    "clock": '<circle cx="6" cy="6" r="4.25"/><path d="M6 3.5V6l1.75 1"/>',
    "cross": '<path d="m3 3 6 6M9 3 3 9"/>',
    "bars": '<path d="M4.25 2.5v7M7.75 2.5v7"/>',
    "dash": '<path d="M3 6h6"/>',
    "slash": '<circle cx="6" cy="6" r="4"/><path d="m3.2 8.8 5.6-5.6"/>',
    "dot": '<circle cx="6" cy="6" r="3" fill="currentColor" stroke="none"/>',
}

#: The same shapes where there is only text.
GLYPHS: Mapping[Shape, str] = {
    "check": "✓",
    "half": "◐",
    "clock": "◷",
    "cross": "✕",
    "bars": "‖",
    "dash": "–",  # noqa: RUF001 - the wide dash is the glyph
    "slash": "⊘",
    "dot": "●",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """The look of one state."""

    word: str
    tone: Tone
    shape: Shape

    @property
    def glyph(self) -> str:
        return GLYPHS[self.shape]

    @property
    def outline(self) -> str:
        return OUTLINES[self.shape]


BADGES: Mapping[str, Mapping[str, Badge]] = {
    "run": {
        "pending": Badge("pending", "mute", "dash"),
        "running": Badge("running", "run", "half"),
        "succeeded": Badge("succeeded", "ok", "check"),
        "failed": Badge("failed", "bad", "cross"),
        "canceled": Badge("canceled", "mute", "slash"),
    },
    "task": {
        "waiting_dependencies": Badge("waiting", "mute", "dash"),
        "ready": Badge("ready", "mute", "dot"),
        "queued": Badge("queued", "wait", "dot"),
        "running": Badge("running", "run", "half"),
        "waiting_retry": Badge("retrying", "wait", "clock"),
        "waiting_approval": Badge("needs approval", "hold", "bars"),
        "succeeded": Badge("succeeded", "ok", "check"),
        "failed": Badge("failed", "bad", "cross"),
        "canceled": Badge("canceled", "mute", "slash"),
        "skipped": Badge("skipped", "mute", "slash"),
    },
    "attempt": {
        "running": Badge("running", "run", "half"),
        "succeeded": Badge("succeeded", "ok", "check"),
        "failed": Badge("failed", "bad", "cross"),
        "timed_out": Badge("timed out", "bad", "clock"),
        "interrupted": Badge("interrupted", "bad", "slash"),
        "canceled": Badge("canceled", "mute", "slash"),
        "released": Badge("released", "mute", "dash"),
        "suspended": Badge("suspended", "hold", "bars"),
    },
    "dispatch": {
        "pending": Badge("pending", "wait", "dot"),
        "leased": Badge("leased", "run", "half"),
        "completed": Badge("completed", "ok", "check"),
        "expired": Badge("expired", "bad", "clock"),
        "released": Badge("released", "mute", "dash"),
        "canceled": Badge("canceled", "mute", "slash"),
    },
    "worker": {
        "active": Badge("active", "ok", "check"),
        "draining": Badge("draining", "hold", "bars"),
        "stopped": Badge("stopped", "mute", "dash"),
        "offline": Badge("offline", "bad", "cross"),
    },
}


def badge_for(kind: str, state: str) -> Badge:
    """The look of `state`; KeyError names a kind or state that the table does not know."""
    return BADGES[kind][state]
