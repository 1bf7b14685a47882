from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.contrib.admin.options import BaseModelAdmin
from django.core.paginator import Page, Paginator
from django.forms.formsets import BaseFormSet
from django.forms.models import BaseModelForm, ModelChoiceField
from django.views.generic.detail import SingleObjectMixin
from django.views.generic.edit import FormMixin
from django.views.generic.list import MultipleObjectMixin

_GENERIC_IN_STUBS: tuple[Any, ...] = (
    BaseFormSet,
    BaseModelAdmin,
    BaseModelForm,
    FormMixin,
    ModelChoiceField,
    MultipleObjectMixin,
    Page,
    Paginator,
    SingleObjectMixin,
)


def allow_type_arguments() -> None:
    """Let ``ModelAdmin[Run]`` and its like run: generic to the type checker, to Django not yet.

    Before any app's admin or views are imported, which this module is, as an app's configuration.
    """
    for plain in _GENERIC_IN_STUBS:
        plain.__class_getitem__ = classmethod(lambda cls, _argument: cls)


allow_type_arguments()


class PlatformSiteConfig(AppConfig):
    """The site itself: management commands, system checks, the overview page."""

    name = "platform_site"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from platform_site.checks import register_checks  # reads settings that need not exist while importing

        register_checks()
