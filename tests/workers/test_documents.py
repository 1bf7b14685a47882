"""The document index, end to end on a small folder, and the examples that ship."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from examples.document_index import definition
from tests.workers.test_executors import Control, request
from workers.actions import corpus
from workers.executors.python import PythonExecutor, collect_actions
from workers.outcome import ExecutionCancelled, Outcome, PermanentFailure, TemporaryFailure
from workflows.kernel import canonical
from workflows.kernel.definition import CompiledWorkflow, check_params, compile_workflow
from workflows.kernel.references import resolve

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXTS = {
    "sea/tides.md": "# Tides\n\nThe moon pulls the sea. High water comes [twice](http://x) a day.\n\n"
    "## Springs\n\nAt new moon tides are higher.",
    "sea/salt.txt": "Salt is won from sea water by the sun.",
    "bread.rst": "Bread\n=====\n\nBread needs flour, water, salt and time.",
    "empty.txt": "",
    ".hidden/secret.txt": "nobody may read this",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that actions may use, with a few texts."""
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "texts" / name).write_text(text)
    (tmp_path / "texts" / "picture.txt").write_bytes(b"\x89PNG\0\0")
    monkeypatch.setenv("WORKLOAD_ACTIONS_ROOT", str(tmp_path))
    monkeypatch.delenv("WORKLOAD_ACTIONS_READ_ROOT", raising=False)
    return tmp_path


def execute(name: str, told: Any, control: Control | None = None) -> Outcome:
    return PythonExecutor(collect_actions()).execute(request(told, action_name=name), control or Control())


def run(compiled: CompiledWorkflow, params: Any) -> dict[str, Any]:
    """Execute the tasks in order, resolving inputs as the control plane does."""
    check_params(compiled, params)
    outputs: dict[str, Any] = {}
    for task in compiled.definition.tasks:
        told = resolve(task.input, params=params, outputs=outputs)
        outputs[task.key] = json.loads(
            canonical.storable(execute(task.action, told).output, max_bytes=65_536)
        )
    return outputs


def compiled_example(name: str) -> CompiledWorkflow:
    return compile_workflow(canonical.loads((EXAMPLES / f"{name}.json").read_bytes()))


def asked(**given: Any) -> dict[str, Any]:
    questions = ["new moon", "how to bake bread", "sea salt"]
    return {"work": "run-1", "source": "texts", "pace_ms": 0, "questions": questions, **given}


@pytest.mark.parametrize(("name", "tasks"), [("hello", 3), ("chain", 20), ("document-index", 40)])
def test_the_examples_compile_without_warnings(name: str, tasks: int) -> None:
    compiled = compiled_example(name)
    assert len(compiled.graph.keys) == tasks
    assert compiled.warnings == ()


def test_the_document_index_is_what_its_generator_prints() -> None:
    assert json.loads((EXAMPLES / "document-index.json").read_text()) == definition()


def test_a_folder_is_indexed_and_answers(root: Path) -> None:
    outputs = run(compile_workflow(definition(shards=2)), asked())
    assert outputs["list"] == {"documents": 5, "source": "texts"}
    assert outputs["merge"]["documents"] == 5
    best = [outputs[f"query-{number}"]["hits"][0]["document"] for number in (1, 2, 3)]
    assert best == ["sea/tides.md", "bread.rst", "sea/salt.txt"]
    assert "[moon]" in outputs["query-1"]["hits"][0]["snippet"]
    assert outputs["report"]["answers"][1] == {"question": "how to bake bread", "best": "bread.rst"}
    assert "## sea salt" in (root / "run-1" / "report.md").read_text()
    assert "nobody may read" not in (root / "run-1" / "shard-000.jsonl").read_text()


def test_every_step_may_be_repeated(root: Path) -> None:
    compiled = compile_workflow(definition(shards=2))
    first = run(compiled, asked())
    assert run(compiled, asked()) == first
    assert sorted(path.name for path in (root / "run-1").iterdir()) == [
        "index.sqlite", "manifest.json", "report.md", "shard-000.jsonl", "shard-001.jsonl",
    ]  # fmt: skip


@pytest.mark.usefixtures("root")
def test_installed_packages_are_documents() -> None:
    outputs = run(
        compile_workflow(definition(shards=3)), asked(source="", questions=["django", "http", "test"])
    )
    assert outputs["list"]["documents"] > 10
    assert "django" in outputs["query-1"]["hits"][0]["title"].lower()


@pytest.mark.parametrize("name", ["../outside", "/etc", "texts/../../x", "a\0b"])
@pytest.mark.usefixtures("root")
def test_nothing_outside_the_root_is_used(name: str) -> None:
    for told in ({"work": name}, {"work": "w", "source": name}):
        with pytest.raises(PermanentFailure) as caught:
            execute("documents.list", told)
        assert caught.value.code == "path_refused"


def test_links_that_lead_out_are_not_followed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "private.txt").write_text("private words")
    (root / "texts" / "link.txt").symlink_to(outside / "private.txt")
    (root / "way-out").symlink_to(outside)
    assert execute("documents.list", {"work": "w", "source": "texts"}).output == {
        "documents": 5,
        "source": "texts",
    }
    with pytest.raises(PermanentFailure, match="lies outside"):
        execute("documents.list", {"work": "w", "source": "way-out"})
    (root / "w" / "manifest.json").write_text(json.dumps({"source": "texts", "documents": ["link.txt"]}))
    with pytest.raises(PermanentFailure, match="lies outside"):
        execute("documents.normalise", {"work": "w", "shard": 0, "shards": 1})


def test_sources_may_have_a_root_of_their_own(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path_factory.mktemp("library")
    (library / "one.txt").write_text("words of one")
    monkeypatch.setenv("WORKLOAD_ACTIONS_READ_ROOT", str(library))
    assert run(compile_workflow(definition(shards=1)), asked(source="."))["merge"]["documents"] == 1
    assert (root / "run-1" / "index.sqlite").exists()


@pytest.mark.usefixtures("root")
def test_a_missing_source_fails_for_good_and_a_missing_shard_does_not() -> None:
    with pytest.raises(PermanentFailure, match="not a folder"):
        execute("documents.list", {"work": "w", "source": "nowhere"})
    summary = {"shard": 0, "documents": 1, "passages": 1, "tokens": 1}
    with pytest.raises(TemporaryFailure) as caught:
        execute("documents.merge", {"work": "w", "shards": [summary]})
    assert caught.value.code == "input_missing"


def test_a_shard_that_is_not_what_it_reported_is_not_merged(root: Path) -> None:
    (root / "w").mkdir()
    (root / "w" / "shard-000.jsonl").write_text('["a", "b", "c", "d"]\n')
    with pytest.raises(TemporaryFailure) as caught:
        execute(
            "documents.merge",
            {"work": "w", "shards": [{"shard": 0, "documents": 1, "passages": 2, "tokens": 1}]},
        )
    assert caught.value.code == "shard_incomplete"
    assert sorted(path.name for path in (root / "w").iterdir()) == ["shard-000.jsonl"]


def test_a_canceled_shard_leaves_nothing_behind(root: Path) -> None:
    execute("documents.list", {"work": "w", "source": "texts"})
    control = Control()
    threading.Timer(0.1, control.cancelled.set).start()
    with pytest.raises(ExecutionCancelled):
        execute("documents.normalise", {"work": "w", "shard": 0, "shards": 1, "pace_ms": 9_000}, control)
    assert sorted(path.name for path in (root / "w").iterdir()) == ["manifest.json"]


def test_questions_are_words_and_not_syntax(root: Path) -> None:
    run(compile_workflow(definition(shards=1)), asked())
    for question in ('moon" OR text:*', "NEAR(moon sea)", "moon -sea ^ ( *", "it's"):
        assert execute("documents.query", {"work": "run-1", "question": question}).kind == "success"
    with pytest.raises(PermanentFailure, match="no words"):
        execute("documents.query", {"work": "run-1", "question": "?!"})


def test_the_index_is_sound(root: Path) -> None:
    run(compile_workflow(definition(shards=2)), asked())
    index = sqlite3.connect(root / "run-1" / "index.sqlite")
    assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert index.execute("SELECT count(DISTINCT document) FROM passages").fetchone() == (3,)
    index.close()


def test_passages_are_clean_text_under_their_heading() -> None:
    text = "# One\n\nSome **bold** [link](http://a.b) and <b>tags</b>.\n\n---\n\n## Two #\n\n" + "word " * 300
    found = list(corpus.passages(text))
    assert [passage.heading for passage in found] == ["One", "Two"]
    assert "link and tags" in found[0].text
    assert "http" not in found[0].text
    assert found[1].tokens == 300
