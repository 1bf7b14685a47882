"""Shapes of requests: unknown fields are refused, and nothing is turned into something else.

REST framework reads `"1"` as 1, `1` as `"1"` and `True` as 1; a program that sends those has a bug and wants
to hear of it. Query parameters are always text, so `QuerySerializer` reads numbers from text instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import QueryDict
from rest_framework import serializers

_UNKNOWN = "This field is not known here."


class StrictSerializer(serializers.Serializer[Any]):
    """A JSON object with these fields and no others; every problem is reported at once."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            message = "This must be a JSON object."
            raise serializers.ValidationError({"non_field_errors": [message]}, code="not_an_object")
        problems: dict[str, Any] = {
            str(name): [serializers.ErrorDetail(_UNKNOWN, code="unknown_field")]
            for name in data
            if name not in self.fields
        }
        values: Any = None
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as refused:
            if not isinstance(refused.detail, dict):
                raise
            problems = {**refused.detail, **problems}
        if problems:
            raise serializers.ValidationError(problems)
        return values


class StrictCharField(serializers.CharField):
    """A string, as it is: not trimmed, not made from a number."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictIntegerField(serializers.IntegerField):
    """An integer: not a string, not a boolean, not 1.0."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return int(data)


class StrictBooleanField(serializers.BooleanField):
    """`true` or `false`."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input="The value")
        return data


class StrictUUIDField(serializers.UUIDField):
    """A UUID as a string."""

    # The framework's sentences repeat the value, and no error body repeats what a request carried.
    default_error_messages = {"invalid": "Must be a UUID."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", value="The value")
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """One of a few words."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            words = ", ".join(map(str, self.choices))
            raise serializers.ValidationError(f"Must be one of: {words}.", code="invalid_choice")
        return data


class JsonValueField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON value, untouched: the parser made it strict already, and its meaning is judged elsewhere."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class QueryIntegerField(serializers.IntegerField):
    """An integer in a query parameter: plain ASCII digits."""

    def to_internal_value(self, data: Any) -> int:
        text = str(data)
        if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= 19):
            self.fail("invalid")
        return int(text)


class QuerySerializer(StrictSerializer):
    """Query parameters: unknown ones are refused, and so is one given twice where one is meant."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, QueryDict):
            return super().to_internal_value(data)
        lists = (serializers.ListField, serializers.MultipleChoiceField)
        plain: dict[str, Any] = {}
        repeated: dict[str, Any] = {}
        for name, values in data.lists():
            if isinstance(self.fields.get(name), lists):
                plain[name] = values
            else:
                plain[name] = values[-1]
                if len(values) > 1:
                    repeated[name] = [serializers.ErrorDetail("Given more than once.", code="repeated")]
        if repeated:
            raise serializers.ValidationError(repeated)
        return super().to_internal_value(plain)


def _default_limit() -> int:
    size: int = settings.WORKLOAD.page_size
    return size


class PageQuery(QuerySerializer):
    """`limit` and `cursor` of every list; lists add their filters by subclassing."""

    limit = QueryIntegerField(required=False, help_text="Items on a page: 1 to 200, 50 if absent.")
    cursor = StrictCharField(required=False, help_text="`next_cursor` of the page before.")

    def validate_limit(self, limit: int) -> int:
        most = settings.WORKLOAD.page_size_max
        if not 1 <= limit <= most:
            raise serializers.ValidationError(f"Must be 1 to {most}.", code="out_of_range")
        return limit

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"limit": _default_limit(), "cursor": None, **attrs}
