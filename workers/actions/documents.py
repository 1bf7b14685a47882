"""Indexing real documents: list, normalise in shards, merge into a full-text index, query, report.

Every action is safe to repeat and safe beside another attempt of itself: it reads what earlier tasks wrote
into the work folder of the run and replaces its own file in one step. Outputs are small and travel by
`$from`; the text itself stays in files. `examples/document-index.json` puts them together.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from workers.actions import corpus
from workers.actions.base import ActionContext, action
from workers.actions.folders import inside, read_root, replacing, temporary_beside, work_folder
from workers.outcome import PermanentFailure, TemporaryFailure

SNIPPET_WORDS = 24
PASSAGES_PER_HIT = 20
_MANIFEST, _INDEX, _REPORT = "manifest.json", "index.sqlite", "report.md"
_SCHEMA = """
CREATE VIRTUAL TABLE passages USING fts5(
    title, heading, text, document UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE terms USING fts5vocab('passages', 'row');
"""
_SEARCH = """
SELECT title, document, heading, snippet(passages, 2, '[', ']', ' ... ', ?),
    bm25(passages, 3.0, 2.0, 1.0) AS score
FROM passages WHERE passages MATCH ? ORDER BY score LIMIT ?
"""


class _Input(BaseModel):
    """`work` names the work folder of the run, below the root that the worker allows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    work: str = Field(min_length=1, max_length=200)


class ListInput(_Input):
    """`source`: a folder below the worker's read root; empty: the descriptions of installed packages."""

    source: str = Field(default="", max_length=1_000)


class NormaliseInput(_Input):
    """One of `shards` equal parts. `pace_ms` slows each document down, for people who watch; 0 does not."""

    shard: int = Field(ge=0)
    shards: int = Field(ge=1, le=1_000)
    pace_ms: int = Field(default=0, ge=0, le=10_000)


class ShardSummary(BaseModel):
    """What a shard found, and the output of its task."""

    shard: int
    documents: int
    passages: int
    tokens: int


class MergeInput(_Input):
    """The outputs of all shards."""

    shards: list[ShardSummary] = Field(min_length=1, max_length=1_000)


class QueryInput(_Input):
    """A question in plain words."""

    question: str = Field(min_length=1, max_length=500)
    limit: int = Field(default=3, ge=1, le=20)


class ReportInput(_Input):
    """The outputs of the list, the merge and the queries."""

    listed: dict[str, Any]
    merged: dict[str, Any]
    answers: list[dict[str, Any]] = Field(max_length=100)


@action("documents.list", input=ListInput)
def list_documents(task: ListInput, context: ActionContext) -> dict[str, Any]:
    """Find the documents and write their names to the manifest of the work folder."""
    folder = work_folder(task.work)
    if task.source:
        root = read_root()
        source = inside(root, task.source)
        if not source.is_dir():
            raise PermanentFailure("source_missing", "the source is not a folder")
        names = corpus.folder_documents(root, source)
    else:
        names = corpus.package_documents()
    if not names:
        raise PermanentFailure("source_empty", "no text was found")
    context.logger.info("found %s documents", len(names))
    with replacing(folder / _MANIFEST, generation=context.generation) as file:
        json.dump({"source": task.source, "documents": names}, file)
    return {"documents": len(names), "source": task.source or "installed packages"}


@action("documents.normalise", input=NormaliseInput)
def normalise(task: NormaliseInput, context: ActionContext) -> ShardSummary:
    """Clean, cut and tokenise every `shards`-th document, starting at `shard`."""
    folder = work_folder(task.work)
    manifest = json.loads(_existing(folder / _MANIFEST).read_text(encoding="utf-8"))
    mine = manifest["documents"][task.shard :: task.shards]
    count = words = 0
    with replacing(_shard_file(folder, task.shard), generation=context.generation) as file:
        for number, name in enumerate(mine):
            context.check_cancelled()
            context.progress(100 * number / len(mine), name)
            title, text = _read(manifest["source"], name)
            for passage in corpus.passages(text):
                json.dump([name, title, passage.heading, passage.text], file, ensure_ascii=False)
                file.write("\n")
                count, words = count + 1, words + passage.tokens
            if task.pace_ms and context.cancelled.wait(task.pace_ms / 1000):
                context.check_cancelled()
    context.logger.info("%s documents, %s passages, %s words", len(mine), count, words)
    return ShardSummary(shard=task.shard, documents=len(mine), passages=count, tokens=words)


@action("documents.merge", input=MergeInput)
def merge(task: MergeInput, context: ActionContext) -> dict[str, Any]:
    """Build the full-text index of all shards beside the old one, then put it in its place."""
    folder = work_folder(task.work)
    building = temporary_beside(folder / _INDEX, generation=context.generation)
    building.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(building)) as index:
            index.executescript(_SCHEMA)
            for number, shard in enumerate(task.shards):
                context.check_cancelled()
                context.progress(100 * number / len(task.shards), f"shard {shard.shard}")
                rows = list(_rows(_existing(_shard_file(folder, shard.shard))))
                if len(rows) != shard.passages:
                    raise TemporaryFailure("shard_incomplete", f"shard {shard.shard} is not what it reported")
                index.executemany(
                    "INSERT INTO passages (document, title, heading, text) VALUES (?, ?, ?, ?)", rows
                )
            index.execute("INSERT INTO passages (passages) VALUES ('optimize')")
            index.commit()
            (terms,) = index.execute("SELECT count(*) FROM terms").fetchone()
        size = building.stat().st_size
        building.replace(folder / _INDEX)
    finally:
        building.unlink(missing_ok=True)
    total: Counter[str] = Counter()
    for shard in task.shards:
        total.update({"documents": shard.documents, "passages": shard.passages, "tokens": shard.tokens})
    context.logger.info("index of %s passages, %s terms, %s bytes", total["passages"], terms, size)
    return {**total, "terms": terms, "bytes": size}


@action("documents.query", input=QueryInput)
def query(task: QueryInput, context: ActionContext) -> dict[str, Any]:
    """Answer with the documents that fit best, each by its best passage; a smaller score fits better."""
    words = corpus.telling(corpus.tokens(task.question))
    if not words:
        raise PermanentFailure("question_empty", "the question has no words")
    index_file = _existing(work_folder(task.work) / _INDEX)
    with closing(sqlite3.connect(f"{index_file.as_uri()}?mode=ro", uri=True)) as index:
        hits = _search(index, " AND ".join(map(_quoted, words)), task.limit)
        if len(hits) < task.limit:  # passages with all the words first, then those with some
            known = {hit["document"] for hit in hits}
            some = _search(index, " OR ".join(map(_quoted, words)), task.limit)
            hits = (hits + [hit for hit in some if hit["document"] not in known])[: task.limit]
    context.logger.info("%s hits", len(hits))
    return {"question": task.question, "hits": hits}


@action("documents.report", input=ReportInput)
def report(task: ReportInput, context: ActionContext) -> dict[str, Any]:
    """Write what was indexed and answered as a page of Markdown."""
    folder = work_folder(task.work)
    with replacing(folder / _REPORT, generation=context.generation) as file:
        file.write("\n".join(_page(task)) + "\n")
    best = [
        {"question": answer["question"], "best": answer["hits"][0]["title"] if answer["hits"] else None}
        for answer in task.answers
    ]
    return {"report": _REPORT, **task.merged, "source": task.listed.get("source"), "answers": best}


def _page(task: ReportInput) -> Iterator[str]:
    merged = task.merged
    yield f"# Index of {task.listed.get('source')}"
    yield ""
    counted = (f"{merged.get(name)} {name}" for name in ("documents", "passages", "tokens", "terms"))
    yield ", ".join(counted) + "."
    for answer in task.answers:
        yield ""
        yield f"## {answer['question']}"
        yield ""
        for hit in answer["hits"]:
            yield f"- **{hit['title']}** {hit['snippet']}"


def _read(source: str, name: str) -> tuple[str, str]:
    try:
        if source:
            root = read_root()
            return corpus.read_file(root, inside(root, source), name)
        return corpus.read_package(name)
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise TemporaryFailure("document_missing", f"{name} was listed and is not there") from error


def _shard_file(folder: Path, shard: int) -> Path:
    return folder / f"shard-{shard:03d}.jsonl"


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise TemporaryFailure("input_missing", f"{path.name} is not there; do all workers share the folder?")
    return path


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _quoted(word: str) -> str:
    """A word as an FTS5 string, so that no word is taken for an operator."""
    return '"' + word.replace('"', '""') + '"'


def _search(index: sqlite3.Connection, match: str, limit: int) -> list[dict[str, Any]]:
    best: dict[str, dict[str, Any]] = {}
    rows = index.execute(_SEARCH, (SNIPPET_WORDS, match, limit * PASSAGES_PER_HIT))
    for title, document, heading, text, score in rows:
        hit = {"title": title[:200], "heading": heading[:200], "snippet": text, "score": round(score, 3)}
        best.setdefault(document, {"document": document, **hit})
    return list(best.values())[:limit]
