"""Real text: finding documents, cutting them into passages, cleaning and tokenising those."""

from __future__ import annotations

import importlib.metadata
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

from workers.actions.folders import inside

MAX_DOCUMENTS = 20_000
MAX_FILE_BYTES = 4 * 1024 * 1024
PASSAGE_CHARACTERS = 700

_SUFFIXES = frozenset(
    {"", ".txt", ".md", ".markdown", ".rst", ".text", ".html", ".htm", ".log", ".csv", ".org"}
)
_TAG = re.compile(r"<[^<>]{1,400}>")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_ADDRESS = re.compile(r"https?://\S+")
_RULE = re.compile(r"^[\s=\-~^*#+_.|:`]{3,}$")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_][\w'-]*")
_SMALL_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "how", "i", "in", "is", "it", "my", "of", "on", "or", "the", "to", "what", "with",
})  # fmt: skip
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")


@dataclass(frozen=True, slots=True)
class Passage:
    """A few hundred characters of one document, cleaned, under its last heading."""

    heading: str
    text: str
    tokens: int


def package_documents() -> list[str]:
    """The installed packages whose metadata has a long description, by normalised name, sorted."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name and _body(distribution.read_text("METADATA") or ""):
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), name)
    return [found[key] for key in sorted(found)]


def read_package(name: str) -> tuple[str, str]:
    """Title and long description of an installed package."""
    distribution = importlib.metadata.distribution(name)
    summary = distribution.metadata.json.get("summary", "")
    title = f"{distribution.metadata['Name']} {distribution.version}"
    return (f"{title}: {summary}" if summary else title), _body(distribution.read_text("METADATA") or "")


def _body(metadata: str) -> str:
    message = message_from_string(metadata)
    body = message.get_payload()
    text = body if isinstance(body, str) and body.strip() else message.get("Description", "")
    return str(text).strip()


def folder_documents(root: Path, source: Path) -> list[str]:
    """The text files below `source`, relative to it, sorted; nothing hidden, nothing outside of `root`."""
    found = []
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or path.suffix.lower() not in _SUFFIXES or not path.is_file():
            continue
        if path.resolve().is_relative_to(root) and path.stat().st_size <= MAX_FILE_BYTES:
            found.append(str(relative))
            if len(found) == MAX_DOCUMENTS:
                break
    return found


def read_file(root: Path, source: Path, relative: str) -> tuple[str, str]:
    """Title and text of a file; the text of a file that is not text is empty."""
    path = inside(root, str(source / relative))
    content = path.read_bytes()[:MAX_FILE_BYTES]
    return relative, "" if b"\0" in content else content.decode("utf-8", errors="replace")


def passages(text: str) -> Iterator[Passage]:
    """Cut at blank lines, gather blocks up to a passage, clean each."""
    heading, gathered = "", ""
    for block in re.split(r"\n\s*\n", text):
        first, _, rest = block.strip().partition("\n")
        if found := _HEADING.match(first.strip()):
            if gathered:
                yield _passage(heading, gathered)
            heading, gathered = clean(found[1]), ""
        lines = (rest if found else block).splitlines()
        cleaned = clean("\n".join(line for line in lines if not _RULE.match(line)))
        if gathered and len(gathered) + len(cleaned) > PASSAGE_CHARACTERS:
            yield _passage(heading, gathered)
            gathered = ""
        gathered = f"{gathered} {cleaned}".strip()
    if gathered:
        yield _passage(heading, gathered)


def _passage(heading: str, text: str) -> Passage:
    return Passage(heading, text, len(tokens(text)))


def clean(text: str) -> str:
    """Plain text: one Unicode spelling, no markup, no addresses, single spaces."""
    text = unicodedata.normalize("NFKC", text).replace("\x00", " ")
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _ADDRESS.sub(" ", _TAG.sub(" ", text))
    return _SPACE.sub(" ", text).strip(" #*`|>")


def telling(words: list[str]) -> list[str]:
    """Without the small words of English that every text has, unless there are no others."""
    return [word for word in words if word not in _SMALL_WORDS] or words


def tokens(text: str) -> list[str]:
    """The words of a text, without case."""
    return [word.casefold() for word in _WORD.findall(text)]
