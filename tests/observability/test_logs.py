from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.sdk.trace import TracerProvider

from observability.logs import FIELDS, bound, formatter, logging_config, redact

DOCS = Path(__file__).parents[2] / "docs" / "observability.md"


@pytest.fixture
def written() -> Iterator[Callable[..., io.StringIO]]:
    """A logger of its own with the platform's formatter; returns what it writes to."""
    logger = logging.getLogger("tests.written")
    handlers: list[logging.Handler] = []

    def start(style: Literal["text", "json"]) -> io.StringIO:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter(style))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        handlers.append(handler)
        return stream

    yield start
    for handler in handlers:
        logger.removeHandler(handler)


LOG = logging.getLogger("tests.written")


def test_a_json_line_has_its_fields_and_no_others(written: Callable[..., io.StringIO]) -> None:
    stream = written("json")
    with bound(run_id="r1", worker_id=None):
        LOG.info("Claimed %d.", 2, extra={"count": 2, "input": {"prompt": "private"}})
    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "Claimed 2.",
        "level": "info",
        "logger": "tests.written",
        "run_id": "r1",
        "count": 2,
    }


def test_a_text_line_says_the_same(written: Callable[..., io.StringIO]) -> None:
    stream = written("text")
    LOG.warning("Slow.", extra={"duration_ms": 12.5, "operation": "claim", "prompt": "private"})
    line = stream.getvalue()
    assert re.search(r"Z \[warning *\] Slow\. .*duration_ms=12\.5 operation=claim", line)
    assert "private" not in line


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_traceback_is_written_without_the_values_in_it(
    written: Callable[..., io.StringIO], style: Literal["text", "json"]
) -> None:
    stream = written(style)
    LOG.error("It broke.", exc_info=ValueError("no\nDETAIL:  Failing row contains (hunter2)."))
    text = stream.getvalue()
    assert "ValueError: no" in text
    assert "hunter2" not in text


def test_a_line_break_cannot_pose_as_another_record(written: Callable[..., io.StringIO]) -> None:
    stream = written("text")
    LOG.info("one\n2026-01-01T00:00:00Z [critical] forged")
    assert len(stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-ghi", "abc.def"),
        ("sent bearer wxyz, then", "wxyz"),
        ("token wl_0123456789_AbC-dEf_ghi was refused", "AbC-dEf_ghi"),
        ("password=hunter2&x=1", "hunter2"),
        ('{"api_key": "hunter2", "x": 1}', "hunter2"),
        ("api-key: hunter2", "hunter2"),
        ("passwd='hunter2 and more'", "and more"),
        ("SECRET = hunter2", "hunter2"),
        ("at postgresql://user:hunter2@host/db", "hunter2"),
        ("duplicate key\nDETAIL:  Key (name)=(hunter2) already exists.", "hunter2"),
        ("Input should be a number [type=int, input_value='hunter2', input_type=str]", "hunter2"),
        ("Cookie: sessionid=hunter2", "hunter2"),
    ],
)
def test_secrets_are_blanked(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "text", ["A token of the tenant.", "12 tokens were listed.", "http://host:80/path", "a: b"]
)
def test_plain_sentences_stay(text: str) -> None:
    assert redact(text) == text


def test_the_span_at_hand_is_named(written: Callable[..., io.StringIO]) -> None:
    stream = written("json")
    with TracerProvider().get_tracer("t").start_as_current_span("s") as span:
        LOG.info("Inside.")
    line = json.loads(stream.getvalue())
    assert int(line["trace_id"], 16) == span.get_span_context().trace_id
    assert len(line["span_id"]) == 16


def test_only_listed_fields_can_be_bound() -> None:
    with pytest.raises(ValueError, match="prompt"):
        bound(prompt="x")


@pytest.mark.parametrize(("style", "level"), [("xml", "INFO"), ("json", "LOUD")])
def test_nonsense_is_refused(style: str, level: str) -> None:
    with pytest.raises(ValueError, match=style if style == "xml" else level):
        logging_config(style, level)


def test_statements_are_never_logged_with_their_text() -> None:
    config: dict[str, Any] = logging_config("text", "debug")
    assert config["root"]["level"] == "DEBUG"
    assert config["loggers"]["django.db.backends"]["level"] == "INFO"


def test_the_documented_fields_are_the_fields() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows).items() >= FIELDS.items()
    assert [name for name, _ in rows if name in FIELDS] == list(FIELDS)
