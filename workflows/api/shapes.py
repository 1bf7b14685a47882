"""What requests about workflows and runs carry. A definition is judged by the kernel, with every problem."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from rest_framework import serializers

from platform_site.api.serializers import (
    PageQuery,
    QueryIntegerField,
    StrictCharField,
    StrictChoiceField,
)
from platform_site.api.shapes import Shape
from workflows.kernel.format import MAX_LABELS, LabelName, LabelValue
from workflows.kernel.states import RunState, TaskState

MIN_PRIORITY, MAX_PRIORITY = -10, 10


class StartRequest(Shape):
    """A run to be started. An empty body starts one without params."""

    params: dict[str, Any] = Field(default_factory=dict)
    """Values that the definition's params schema accepts, at most 64 KiB."""
    priority: Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)] = 0
    """A level is worth five seconds of waiting."""
    labels: Annotated[dict[LabelName, LabelValue], Field(max_length=MAX_LABELS)] = Field(default_factory=dict)
    """Names and values to find the run by."""


class RunQuery(PageQuery):
    """Filters of the list of runs; all must hold."""

    workflow_id = StrictCharField(required=False, max_length=64, help_text="Runs of this workflow.")
    state = serializers.ListField(
        child=StrictChoiceField(choices=[state.value for state in RunState]),
        required=False,
        max_length=len(RunState),
        help_text="In one of these states; may be repeated.",
    )
    label = serializers.ListField(  # type: ignore[assignment] # a field of that name; the attribute is not used
        child=serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}=[^\x00-\x1f\x7f]{0,64}$"),
        required=False,
        max_length=MAX_LABELS,
        help_text="`name=value`; may be repeated, all must hold.",
    )


class TaskQuery(PageQuery):
    """Filters of the tasks of a run."""

    state = serializers.ListField(
        child=StrictChoiceField(choices=[state.value for state in TaskState]),
        required=False,
        max_length=len(TaskState),
        help_text="In one of these states; may be repeated.",
    )


class EventQuery(PageQuery):
    """Where to read on."""

    after = QueryIntegerField(
        required=False,
        min_value=0,
        help_text="Events with a higher `seq` than this: a reader that remembers its last one misses nothing. "
        "A cursor goes before it.",
    )


class LogQuery(PageQuery):
    """Filters of the log of a task."""

    attempt = QueryIntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Lines of this attempt only."
    )
