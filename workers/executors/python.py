"""The `python` executor: runs actions registered in code. The action name selects, it never imports."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import Any

from pydantic import ValidationError

from workers import outcome
from workers.actions import SHIPPED, Action, ActionContext
from workers.executors.base import ExecutionControl, ExecutionRequest
from workers.outcome import Outcome

logger = logging.getLogger("workers.executors.python")

ENTRY_POINT_GROUP = "workload.actions"


class ActionsInvalid(ValueError):
    """The actions of this worker cannot be collected; the message says which module and why."""


class PythonExecutor:
    """Executes the actions it is given."""

    kind = "python"

    def __init__(self, actions: Mapping[str, Action[Any]]) -> None:
        self._actions = MappingProxyType(dict(actions))

    @property
    def actions(self) -> tuple[str, ...]:
        """The names this worker knows, sorted."""
        return tuple(sorted(self._actions))

    def execute(self, request: ExecutionRequest, control: ExecutionControl) -> Outcome:
        """Check the input against the action's model and run the action."""
        action = self._actions.get(request.action)
        if action is None:
            return outcome.permanent("unknown_action", f"this worker has no action {request.action!r}")
        try:
            task = action.input.model_validate(request.input or {})
        except ValidationError as error:
            return outcome.of_invalid_input(error)
        return outcome.success(action(task, ActionContext(request, control)))


def collect_actions(modules: Iterable[str] = ()) -> dict[str, Action[Any]]:
    """The actions shipped, those of installed packages (entry points), and those of the modules named."""
    found: dict[str, Action[Any]] = {}
    for name in (*SHIPPED, *modules):
        _add(found, _module(name), source=name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            _add(found, point.load(), source=f"entry point {point.name}")
        except ImportError as error:
            raise ActionsInvalid(
                f"entry point {point.name} ({point.value}) cannot be loaded: {error}"
            ) from error
    return found


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ActionsInvalid(f"the action module {name!r} cannot be imported: {error}") from error


def _add(found: dict[str, Action[Any]], loaded: object, *, source: str) -> None:
    """Enter one action, or every action that is an attribute of a module."""
    values = vars(loaded).values() if isinstance(loaded, ModuleType) else (loaded,)
    actions = [value for value in values if isinstance(value, Action)]
    if not actions:
        raise ActionsInvalid(f"{source} has no actions: see workers.actions")
    for action in actions:
        if found.setdefault(action.name, action) is not action:
            raise ActionsInvalid(f"{source}: there is another action named {action.name!r}")
