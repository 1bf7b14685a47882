"""The workflow format: fields, defaults and limits.

These models are the one source of the format: they parse, they fill defaults, and the JSON Schema for
editors, for models and for the API description is made from them. What concerns several fields or several
tasks (existing dependencies, cycles, references) is checked in `checks`.

Every integer is bounded so that a 32-bit column holds it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

MAX_TASKS = 10_000
MAX_CONCURRENCY = 1_000_000
MAX_DEPENDENCIES = 1_000_000
"""Edges of one definition, all tasks together."""
MAX_INPUT_BYTES = 64 * 1024
MAX_PARAMS_SCHEMA_BYTES = 64 * 1024
MAX_PARAMS_BYTES = 64 * 1024
MAX_ATTEMPTS = 1_000
MIN_TIMEOUT_MS = 100
DEFAULT_TIMEOUT_MS = 300_000
MAX_TIMEOUT_MS = 7 * 24 * 3_600_000
MAX_INTERVAL_MS = 7 * 24 * 3_600_000
MAX_MULTIPLIER = 1_000.0
MAX_ACTION_CHARACTERS = 256
MAX_LABELS = 16
MAX_ERROR_CODES = 64
MAX_ERROR_CODE_CHARACTERS = 128

KEY_PATTERN = r"^[a-z0-9_-]{1,64}$"
EXECUTOR_PATTERN = r"^[a-z][a-z0-9_-]{0,63}$"
LABEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"
LABEL_VALUE_PATTERN = r"^[^\x00-\x1f\x7f]{0,64}$"
NOT_BLANK_PATTERN = r"\S"

DEFAULT_EXECUTOR = "mock"

Key = Annotated[str, Field(pattern=KEY_PATTERN)]
LabelName = Annotated[str, Field(pattern=LABEL_NAME_PATTERN)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE_PATTERN)]
ErrorCode = Annotated[str, Field(pattern=NOT_BLANK_PATTERN, max_length=MAX_ERROR_CODE_CHARACTERS)]


def _at_least_one(number: int) -> int:
    return max(number, 1)


# JSON has arrays where Python has tuples; everything else stays strict, the items of these arrays included.
_ARRAY = Field(strict=False)


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )


class RetryPolicy(_Part):
    """Whether and when a failed attempt is tried again."""

    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS), AfterValidator(_at_least_one)] = 1
    """Attempts in all, the first included; 0 means 1."""

    interval_ms: Annotated[int, Field(ge=0, le=MAX_INTERVAL_MS)] = 0
    """Milliseconds before the second attempt."""

    backoff: Literal["fixed", "exponential"] = "fixed"
    """fixed: always the same interval. exponential: each interval is `multiplier` times the one before."""

    multiplier: Annotated[float, Field(ge=1.0, le=MAX_MULTIPLIER)] = 2.0
    """Growth of the interval from attempt to attempt; used by exponential backoff alone."""

    max_interval_ms: Annotated[int, Field(ge=0, le=MAX_INTERVAL_MS)] | None = None
    """Upper bound of the interval; at least interval_ms. Without it, seven days."""

    jitter: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Share of the interval that chance may take away: 0 none, 1 all of it."""

    non_retryable: Annotated[tuple[ErrorCode, ...], _ARRAY, Field(max_length=MAX_ERROR_CODES)] = ()
    """Error codes after which no further attempt is made."""


class TaskDefinition(_Part):
    """One step of the workflow."""

    key: Key
    """Name of the task, unique within the workflow."""

    executor: Annotated[str, Field(pattern=EXECUTOR_PATTERN)] = DEFAULT_EXECUTOR
    """Kind of executor that runs the task."""

    action: Annotated[str, Field(pattern=NOT_BLANK_PATTERN, max_length=MAX_ACTION_CHARACTERS)]
    """What the executor is to do: a label that selects a registered action and is never interpreted."""

    input: dict[str, JsonValue] | None = None
    """Input of the action, at most 64 KiB of JSON; {"$from": "..."} takes a param or an output."""

    depends_on: Annotated[tuple[str, ...], _ARRAY] = ()
    """Keys of the tasks that must succeed before this one starts."""

    retry: RetryPolicy = RetryPolicy()
    """What happens after a failed attempt; without it a task has one attempt."""

    timeout_ms: Annotated[int, Field(ge=MIN_TIMEOUT_MS, le=MAX_TIMEOUT_MS)] = DEFAULT_TIMEOUT_MS
    """Milliseconds that one attempt may take."""

    requires: Annotated[dict[LabelName, LabelValue], Field(max_length=MAX_LABELS)] = Field(
        default_factory=dict
    )
    """Labels that a worker must have to be given this task."""


class WorkflowDefinition(_Part):
    """A workflow: tasks and the order in which they may run."""

    id: Key
    """Name of the workflow."""

    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)]
    """How many tasks of one run may be queued or running at the same time."""

    tasks: Annotated[tuple[TaskDefinition, ...], _ARRAY, Field(min_length=1, max_length=MAX_TASKS)]
    """The steps; their order is the order of preference among tasks that could start."""

    params: dict[str, JsonValue] | None = None
    """JSON Schema (draft 2020-12) of the parameters that a run may be started with."""


def definition_schema() -> dict[str, Any]:
    """The JSON Schema of the format. Rules between fields are in its descriptions only."""
    schema = WorkflowDefinition.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
