from __future__ import annotations

from django.urls import path

from workflows.console import views

urlpatterns = [
    path("runs", views.RunListView.as_view(), name="runs"),
    path("runs/<uuid:run_id>", views.RunView.as_view(), name="run"),
    path("runs/<uuid:run_id>/cancel", views.CancelRunView.as_view(), name="run-cancel"),
    path("runs/<uuid:run_id>/tasks/<str:key>", views.TaskView.as_view(), name="task"),
    path("workflows", views.WorkflowListView.as_view(), name="workflows"),
    path("workflows/<str:name>", views.WorkflowView.as_view(), name="workflow"),
    path("workflows/<str:name>/versions/<int:number>", views.VersionView.as_view(), name="workflow-version"),
]
