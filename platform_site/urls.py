"""Mounts each app's addresses; every path of the platform begins in this list."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from platform_site import health
from platform_site.home import OverviewView
from platform_site.metrics_view import MetricsView

urlpatterns: list[URLResolver | URLPattern] = [
    path("api/v1/", include("dispatch.api.urls")),  # first: workers call many times a second
    path("api/v1/", include("workflows.api.urls")),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
    path("admin/", admin.site.urls),
    path("", OverviewView.as_view(), name="overview"),
    path("", include("platform_site.console.urls")),
    path("", include("workflows.console.urls")),
    path("", include("dispatch.console.urls")),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("metrics", MetricsView.as_view(), name="metrics"),
]

handler400 = "platform_site.api.handler.bad_request"
handler403 = "platform_site.api.handler.permission_denied"
handler404 = "platform_site.api.handler.page_not_found"
handler500 = "platform_site.api.handler.server_error"
