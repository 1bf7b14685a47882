"""Prints the JSON Schema of the format: `python -m workflows.kernel.schema > docs/workflow.schema.json`."""

from __future__ import annotations

import json
import sys

from workflows.kernel.format import definition_schema


def schema_text() -> str:
    """The schema as it is kept in the documentation."""
    return json.dumps(definition_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
