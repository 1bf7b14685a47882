from __future__ import annotations

from django.urls import path

from dispatch.console import views

urlpatterns = [path("workers", views.WorkersView.as_view(), name="workers")]
