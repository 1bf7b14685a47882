"""Addresses of workflows, versions and runs. Their parts stand on log lines under the names given here."""

from __future__ import annotations

from django.urls import path

from workflows.api import views

_WORKFLOW = "workflows/<str:workflow_id>"
_VERSION = f"{_WORKFLOW}/versions/<int:workflow_version>"
_RUN = "runs/<uuid:run_id>"
_TASK = f"{_RUN}/tasks/<str:task_key>"

urlpatterns = [
    path("workflows", views.Workflows.as_view()),
    path(_WORKFLOW, views.Workflow.as_view()),
    path(f"{_WORKFLOW}/runs", views.StartLatest.as_view()),
    path(f"{_WORKFLOW}/versions", views.Versions.as_view()),
    path(_VERSION, views.Version.as_view()),
    path(f"{_VERSION}/runs", views.StartVersion.as_view()),
    path("runs", views.Runs.as_view()),
    path(_RUN, views.Run.as_view()),
    path(f"{_RUN}/events", views.Events.as_view()),
    path(f"{_RUN}/tasks", views.Tasks.as_view()),
    path(_TASK, views.Task.as_view()),
    path(f"{_TASK}/logs", views.Logs.as_view()),
]
