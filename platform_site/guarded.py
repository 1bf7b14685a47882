"""Querysets and models whose protected columns only their owner writes.

A state column changed by a stray ``save()`` or ``update()`` skips the transition table, the event and the
counters. These classes make the accident loud: they refuse the write and name the module to call instead. The
owners (the ledger, the dispatch operations) write with SQL of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NoReturn, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)


class GuardedWriteError(RuntimeError):
    """Somebody wrote a protected column past its owner."""


class _MakesNoRows:
    """Refuses to make rows, whichever way is asked for."""

    model: type[models.Model]

    def create(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise GuardedWriteError(_message(self.model, "create", ["a row"]))

    def bulk_create(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise GuardedWriteError(_message(self.model, "bulk_create", ["rows"]))

    def get_or_create(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise GuardedWriteError(_message(self.model, "get_or_create", ["a row"]))

    def update_or_create(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise GuardedWriteError(_message(self.model, "update_or_create", ["a row"]))


class GuardedQuerySet(_MakesNoRows, models.QuerySet[M]):
    """Refuses every write of a guarded column."""

    model: type[M]

    def update(self, **kwargs: Any) -> int:
        self._guard(kwargs, "update")
        return super().update(**kwargs)

    def bulk_update(self, objs: Iterable[M], fields: Iterable[str], batch_size: int | None = None) -> int:
        names = list(fields)
        self._guard(names, "bulk_update")
        return super().bulk_update(objs, names, batch_size=batch_size)

    def _guard(self, fields: Iterable[str], verb: str) -> None:
        guarded: frozenset[str] = getattr(self.model, "GUARDED_FIELDS", frozenset())
        hit = sorted(set(fields) & guarded)
        if hit:
            raise GuardedWriteError(_message(self.model, verb, hit))


class GuardedManager(_MakesNoRows, models.Manager[M]):
    """The manager of guarded models: reads as usual, refuses to write what is not its own."""

    model: type[M]

    def get_queryset(self) -> GuardedQuerySet[M]:
        return GuardedQuerySet(self.model, using=self._db)


class GuardedModel(models.Model):
    """A row that only its owner writes; ``OWNER`` names the module to call instead."""

    GUARDED_FIELDS: ClassVar[frozenset[str]] = frozenset()
    OWNER: ClassVar[str] = ""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        fields = kwargs.get("update_fields")
        if fields is None or set(fields) & self.GUARDED_FIELDS:
            raise GuardedWriteError(_message(type(self), "save", sorted(self.GUARDED_FIELDS)))
        super().save(*args, **kwargs)


def _message(model: type[models.Model], verb: str, what: list[str]) -> str:
    owner = getattr(model, "OWNER", "its owner")
    return f"{model.__name__}.{verb}() would write {', '.join(what)}; only {owner} does. Call its operations."
