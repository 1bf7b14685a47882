"""`/metrics`: what this process counted (django-prometheus), and the coordinator's last snapshot."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django_prometheus.exports import ExportToDjangoView  # type: ignore[import-untyped] # ships no types
from prometheus_client import generate_latest
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from observability.registry import PLATFORM_REGISTRY
from platform_site.access.permissions import CanView
from platform_site.api.views import ApiView


class CanScrape(BasePermission):
    """Anybody while WORKLOAD_METRICS_PUBLIC says so, else whoever may view. It names no tenant and no id."""

    message = CanView.message

    def has_permission(self, request: Request, view: APIView) -> bool:
        return bool(settings.WORKLOAD.metrics_public) or CanView().has_permission(request, view)


class MetricsView(ApiView):
    schema = None  # not part of the API: Prometheus' own format
    permissions = {"GET": CanScrape}

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        # Scrapers ask for formats that no renderer has; there is one format, whatever is asked.
        return super().perform_content_negotiation(request, force=True)

    def get(self, request: Request) -> HttpResponse:
        response: HttpResponse = ExportToDjangoView(request)
        response.content = response.content + generate_latest(PLATFORM_REGISTRY)
        return response
