"""How to write an action, and the actions that ship with the product.

    from pydantic import BaseModel
    from workers.actions import ActionContext, TemporaryFailure, action

    class Resize(BaseModel):
        image: str
        width: int

    @action("images.resize", input=Resize)
    def resize(task: Resize, context: ActionContext) -> dict[str, int]:
        ...

An action is a value: the decorator returns it and registers nothing. A worker collects the actions of the
modules it is given (`--action-module`), of the entry points in the group `workload.actions`, and of the
modules named here. The action name in a definition only selects among these; it never imports anything.
"""

from __future__ import annotations

from workers.actions.base import Action, ActionContext, action
from workers.outcome import ExecutionCancelled, PermanentFailure, TemporaryFailure

__all__ = [
    "SHIPPED",
    "Action",
    "ActionContext",
    "ExecutionCancelled",
    "PermanentFailure",
    "TemporaryFailure",
    "action",
]

SHIPPED = ("workers.actions.documents",)
"""Modules with the actions that ship with the product."""
