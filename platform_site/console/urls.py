"""Addresses of the console's own pages; each app adds its own."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from platform_site.console.views import SignInView, ThemeView

urlpatterns = [
    path("login", SignInView.as_view(), name="login"),
    path("logout", LogoutView.as_view(next_page="login"), name="logout"),
    path("theme", ThemeView.as_view(), name="theme"),
]
