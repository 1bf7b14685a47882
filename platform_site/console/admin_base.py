"""What our admin pages share: they show and ask, never write a row, and never count a large table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import models
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from django.utils.functional import cached_property

M = TypeVar("M", bound=models.Model)
P = TypeVar("P", bound=models.Model)

#: Rows that a list reaches without a search: a filter on a rare state would read the whole table otherwise.
RECENT_ROWS = 20_000
#: A list counts no further than this.
COUNTED_ROWS = 2_000
#: Characters shown of a text that may be megabytes.
SHOWN_CHARACTERS = 4_096


class BoundedPaginator(Paginator[Any]):
    """Counts no further than COUNTED_ROWS; filters and the search reach what lies behind."""

    @cached_property
    def count(self) -> int:
        rows = cast("models.QuerySet[Any]", self.object_list)  # what the admin hands over
        return rows.order_by()[:COUNTED_ROWS].count()


def as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


class _ReadOnlyPermissions:
    """Nobody adds, changes or deletes, whatever their rights."""

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:  # noqa: ARG002
        return False


def shown_fields(model: type[models.Model], *, left_out: Sequence[str] = ()) -> list[str]:
    """The columns of a model that a page shows: no digests, and not what is left out."""
    return [
        field.name
        for field in model._meta.concrete_fields  # noqa: SLF001 - Django's documented interface
        if not isinstance(field, models.BinaryField) and field.name not in left_out
    ]


def shown_text(value: str | None) -> str:
    """A long text, cut where the page would become unreadable; it says so."""
    text = value or ""
    cut = len(text) - SHOWN_CHARACTERS
    return text if cut <= 0 else f"{text[:SHOWN_CHARACTERS]} … ({cut:,} more characters)"


class ReadOnlyAdmin(_ReadOnlyPermissions, admin.ModelAdmin[M], Generic[M]):
    """Every field read-only; lists newest first, over the most recent rows, without counting them all.

    `long_texts` are shown cut; `run_search` lets the search take a run's id, which reaches all its rows.
    """

    ordering = ("-pk",)
    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    long_texts: ClassVar[Sequence[str]] = ()
    run_search: ClassVar[str] = ""

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> list[str]:  # noqa: ARG002
        return self._shown()

    def get_fields(self, request: HttpRequest, obj: M | None = None) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(self._shown())

    def _shown(self) -> list[str]:
        names = shown_fields(self.model, left_out=self.long_texts)
        return [*names, *(f"{name}_shown" for name in self.long_texts)]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[M]:
        rows = super().get_queryset(request)
        match = request.resolver_match
        if match is None or not (match.url_name or "").endswith("_changelist"):
            return rows
        term = request.GET.get("q", "").strip()
        return self.searched(rows, term) if term else self.recent(rows)

    def searched(self, rows: models.QuerySet[M], term: str) -> models.QuerySet[M]:
        """Rows that a term names through an index (key, run); else the recent ones, for `search_fields`."""
        identity = as_uuid(term)
        if identity is not None and self.run_search:
            return rows.filter(**{self.run_search: identity})
        if identity is not None and isinstance(self.opts.pk, models.UUIDField):
            return rows.filter(pk=identity)
        return self.recent(rows)

    def recent(self, rows: models.QuerySet[M]) -> models.QuerySet[M]:
        """The RECENT_ROWS newest rows; one statement, along the key's index."""
        newest = rows.order_by("-pk").values_list("pk", flat=True)
        floor = newest[RECENT_ROWS : RECENT_ROWS + 1].first()
        return rows if floor is None else rows.filter(pk__gt=floor)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[M], search_term: str
    ) -> tuple[models.QuerySet[M], bool]:
        if as_uuid(search_term.strip()) is not None:
            return queryset, False  # `searched` has narrowed it already
        return super().get_search_results(request, queryset, search_term)


class _BoundedFormSet(BaseInlineFormSet[Any, Any, Any]):
    """Shows the first `shown` rows of a relation."""

    shown: ClassVar[int] = 50

    def get_queryset(self) -> models.QuerySet[Any]:
        if not hasattr(self, "_bounded"):
            self._bounded = super().get_queryset()[: self.shown]
        return self._bounded


class BoundedInline(_ReadOnlyPermissions, admin.TabularInline[M, P], Generic[M, P]):
    """Related rows inside a page, at most 50, read-only, each a link to its own page."""

    formset = _BoundedFormSet
    extra = 0
    max_num = 0
    can_delete = False
    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: P | None = None) -> list[str]:  # noqa: ARG002
        return [str(name) for name in self.fields or ()]
