"""Places in JSON: a path for people, a line and column in a text, and a tokenizer that knows where it stands.

The tokenizer serves error messages alone. The fast decoder of the standard library says that something is
wrong, and only then is the text walked again to say where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST_KEY = 64

# Possessive, because a text of megabytes must not be kept for backtracking.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def json_path(parts: Sequence[str | int], root: str = "$") -> str:
    """`("tasks", 3, "requires", "gpu-type")` -> `$.tasks[3].requires["gpu-type"]`; long keys are cut."""
    return root + "".join(map(_step, parts))


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if len(part) > _LONGEST_KEY:
        part = part[: _LONGEST_KEY - 3] + "..."
    return f".{part}" if _PLAIN_KEY.match(part) else f"[{json.dumps(part)}]"


def locate(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its text, its offset, the path of its value, the depth it opens or stands at."""

    text: str
    offset: int
    parts: tuple[str | int, ...]
    depth: int
    repeated: bool


@dataclass(slots=True)
class _Frame:
    is_object: bool
    step: str | int | None
    names: set[str] = field(default_factory=set)
    wants_key: bool = False


def scan(text: str) -> Iterator[Token]:
    """Tokens of a JSON text, as far as it can be followed. Iterative: any depth is fine."""
    frames: list[_Frame] = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        repeated = False
        if frames and frames[-1].wants_key and word.startswith('"'):
            repeated = _enter_key(frames[-1], word)
        elif word == ",":
            _next_item(frames)
        elif word in {"}", "]"} and frames:
            frames.pop()
        depth = len(frames) + (word in {"{", "["})
        parts = tuple(frame.step for frame in frames if frame.step is not None)
        yield Token(word, match.start(), parts, depth, repeated)
        if word == "{":
            frames.append(_Frame(is_object=True, step=None, wants_key=True))
        elif word == "[":
            frames.append(_Frame(is_object=False, step=0))


def _enter_key(frame: _Frame, word: str) -> bool:
    """Take a key; says whether its object had it already."""
    name = json.loads(word, strict=False)
    repeated = name in frame.names
    frame.names.add(name)
    frame.step = name
    frame.wants_key = False
    return repeated


def _next_item(frames: list[_Frame]) -> None:
    if not frames:
        return
    frame = frames[-1]
    if frame.is_object:
        frame.wants_key = True
    elif isinstance(frame.step, int):
        frame.step += 1
