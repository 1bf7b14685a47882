"""Print the workflow of `document-index.json` for a given number of shards: `python document_index.py 34`."""

from __future__ import annotations

import json
import sys
from typing import Any

SHARDS = 34
RETRY = {
    "max_attempts": 5,
    "interval_ms": 500,
    "backoff": "exponential",
    "max_interval_ms": 5_000,
    "jitter": 0.2,
}
QUESTIONS = 3


def definition(shards: int = SHARDS) -> dict[str, Any]:
    """List, `shards` parallel shards, merge, three questions, report: shards + 6 tasks."""
    keys = [f"shard-{number:02d}" for number in range(shards)]
    tasks = [_task("list", "documents.list", [], source={"$from": "params.source"})]
    tasks += [
        _task(
            key,
            "documents.normalise",
            ["list"],
            shard=number,
            shards=shards,
            pace_ms={"$from": "params.pace_ms"},
        )
        for number, key in enumerate(keys)
    ]
    tasks.append(
        _task("merge", "documents.merge", keys, shards=[{"$from": f"tasks.{key}.output"} for key in keys])
    )
    asked = [f"query-{number}" for number in range(1, QUESTIONS + 1)]
    tasks += [
        _task(key, "documents.query", ["merge"], question={"$from": f"params.questions.{number}"})
        for number, key in enumerate(asked)
    ]
    answers = [{"$from": f"tasks.{key}.output"} for key in asked]
    tasks.append(
        _task(
            "report",
            "documents.report",
            ["list", "merge", *asked],
            listed={"$from": "tasks.list.output"},
            merged={"$from": "tasks.merge.output"},
            answers=answers,
        )
    )
    return {"id": "document-index", "concurrency": 16, "params": _params(), "tasks": tasks}


def _task(key: str, action: str, depends_on: list[str], **inputs: Any) -> dict[str, Any]:
    return {
        "key": key,
        "executor": "python",
        "action": action,
        "depends_on": depends_on,
        "timeout_ms": 120_000,
        "retry": RETRY,
        "input": {"work": {"$from": "params.work"}, **inputs},
    }


def _params() -> dict[str, Any]:
    question = {"type": "string", "minLength": 1, "maxLength": 500}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["work", "source", "pace_ms", "questions"],
        "properties": {
            "work": {
                "type": "string",
                "description": "work folder, below the workers' WORKLOAD_ACTIONS_ROOT",
            },
            "source": {
                "type": "string",
                "description": "folder of text; empty: descriptions of installed packages",
            },
            "pace_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "pause per document, for viewers; 0: none",
            },
            "questions": {"type": "array", "items": question, "minItems": QUESTIONS, "maxItems": QUESTIONS},
        },
    }


if __name__ == "__main__":
    json.dump(definition(int(sys.argv[1]) if len(sys.argv) > 1 else SHARDS), sys.stdout, indent=2)
    sys.stdout.write("\n")
