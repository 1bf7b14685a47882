"""Addresses of the worker protocol, of workers for people, and of cancel: dispatch carries it out.

What is called most often stands first, since addresses are tried in order.
"""

from __future__ import annotations

from django.urls import path

from dispatch.api import people, views

_LEASE = "workers/<uuid:worker_id>/leases/<uuid:dispatch_id>"

urlpatterns = [
    path("workers/<uuid:worker_id>/completions", views.Completions.as_view()),
    path("workers/<uuid:worker_id>/claims", views.Claims.as_view()),
    path("workers/<uuid:worker_id>/heartbeat", views.Heartbeats.as_view()),
    path(f"{_LEASE}/complete", views.Complete.as_view()),
    path(f"{_LEASE}/logs", views.Logs.as_view()),
    path(f"{_LEASE}/progress", views.Progress.as_view()),
    path(f"{_LEASE}/release", views.Release.as_view()),
    path("workers/<uuid:worker_id>/drain", views.Drain.as_view()),
    path("workers/register", views.Register.as_view()),
    path("workers", people.Workers.as_view()),
    path("workers/<uuid:worker_id>", people.Worker.as_view()),
    path("runs/<uuid:run_id>/cancel", people.Cancel.as_view()),
]
