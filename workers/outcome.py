"""What came of an execution, and the one place where exceptions are classified.

Failures that action authors raise:

    ExecutionFailure
      TemporaryFailure     worth another attempt, as the retry policy allows
      PermanentFailure     another attempt would fail the same way
    ExecutionCancelled     the lease is lost or the worker stops: nothing is submitted; raised by
                           `check_cancelled`, an unforeseen error if nobody canceled

Whoever raises classifies. Everything else is an unforeseen error, taken to be temporary, with the code
`unhandled_error`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from observability.logs import redact
from workflows.kernel import canonical
from workflows.kernel.canonical import JsonInvalid, JsonValue

MAX_OUTPUT_BYTES = 64 * 1024
MAX_CODE_BYTES = 128
MAX_MESSAGE_BYTES = 8 * 1024
_SHOWN_INPUT_ERRORS = 10
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class ExecutionFailure(Exception):
    """A failure with a short stable `code` (at most 128 bytes) and a message for people."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message or code


class TemporaryFailure(ExecutionFailure):
    """May succeed on another attempt."""


class PermanentFailure(ExecutionFailure):
    """Will fail the same way every time."""


class ExecutionCancelled(Exception):
    """The execution was told to stop; its result is no longer wanted."""


class OutcomeKind(StrEnum):
    """The three kinds of result the control plane takes."""

    SUCCESS = "success"
    TEMPORARY = "temporary_failure"
    PERMANENT = "permanent_failure"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result to submit. `output` belongs to a success, the error fields to a failure."""

    kind: OutcomeKind
    output: JsonValue = None
    error_code: str = ""
    error_message: str = ""


def success(output: JsonValue) -> Outcome:
    """The execution did what it was asked to."""
    return Outcome(OutcomeKind.SUCCESS, output=output)


def temporary(code: str, message: str = "") -> Outcome:
    """A failure that another attempt may overcome."""
    return Outcome(OutcomeKind.TEMPORARY, error_code=code, error_message=message or code)


def permanent(code: str, message: str = "") -> Outcome:
    """A failure that every attempt would meet."""
    return Outcome(OutcomeKind.PERMANENT, error_code=code, error_message=message or code)


def of_exception(error: Exception, *, canceled: bool) -> Outcome | None:
    """Classify what an executor raised; `canceled`: it was told to stop, so there is nothing to submit
    (None).

    The message of an unforeseen error names its class and its text; its traceback is for the worker's log
    only. Messages are stored and shown, so secrets in them are blanked and refused values left out.
    """
    if canceled:
        return None
    if isinstance(error, TemporaryFailure):
        return temporary(error.code, _shown(error.message))
    if isinstance(error, PermanentFailure):
        return permanent(error.code, _shown(error.message))
    return temporary("unhandled_error", f"{type(error).__name__}: {_shown(_text_of(error))}")


def of_invalid_input(error: ValidationError) -> Outcome:
    """The input does not fit the action's model: where and why, never the values themselves."""
    return permanent("invalid_input", _shown(_problems(error)))


def _text_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _problems(error)
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # an author's broken `__str__` is no reason to end the worker
        return "(its text cannot be read)"


def _shown(text: str) -> str:
    """`text` without secrets; cut before it is searched, which takes time, and well above what is stored."""
    return redact(text[: 2 * MAX_MESSAGE_BYTES])


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        "$" + "".join(f"[{p!r}]" for p in problem["loc"]) + f": {problem['msg']}" for problem in problems
    ]
    if len(lines) > _SHOWN_INPUT_ERRORS:
        lines[_SHOWN_INPUT_ERRORS:] = [f"and {len(lines) - _SHOWN_INPUT_ERRORS} more"]
    return "; ".join(lines)


def encode(outcome: Outcome) -> str:
    """The canonical JSON text of a result.

    An output that cannot be stored becomes a permanent failure, `result_too_large` or `result_invalid`. Error
    texts are cleaned of what cannot be stored and cut to the limits of the protocol.
    """
    if outcome.kind is OutcomeKind.SUCCESS:
        try:
            output = canonical.storable(outcome.output, max_bytes=MAX_OUTPUT_BYTES)
        except JsonInvalid as error:
            code = "result_too_large" if error.code == "too_large" else "result_invalid"
            return encode(permanent(code, f"the output cannot be stored: {error}"))
        return f'{{"kind":"success","output":{output}}}'
    code = _clean(outcome.error_code, MAX_CODE_BYTES) or "unnamed_failure"
    message = _clean(outcome.error_message, MAX_MESSAGE_BYTES)
    return canonical.dumps({"kind": str(outcome.kind), "error_code": code, "error_message": message})


def _clean(text: str, max_bytes: int) -> str:
    """`text` without U+0000 and lone surrogates, at most `max_bytes` of UTF-8."""
    encoded = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text).encode()
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - 3].decode(errors="ignore") + "..."
