"""What a request about workflows and runs can be refused for.

    DomainError
      - WorkflowNotFound      404 not_found
      - VersionNotFound       404 not_found
      - RunNotFound           404 not_found
      - TaskNotFound          404 not_found
      - WorkflowExists        409 workflow_exists
      - DefinitionIdMismatch  400 definition_id_mismatch
      - TooManyTaskClasses    409 too_many_task_classes

Definitions and params that are wrong raise the kernel's DefinitionInvalid and ParamsInvalid, which name every
problem with its path.
"""

from __future__ import annotations

from platform_site.api.errors import DomainError


class WorkflowNotFound(DomainError):
    """There is no such workflow."""

    code = "not_found"
    status = 404


class VersionNotFound(DomainError):
    """The workflow has no such version."""

    code = "not_found"
    status = 404


class RunNotFound(DomainError):
    """There is no such run."""

    code = "not_found"
    status = 404


class TaskNotFound(DomainError):
    """The run has no such task."""

    code = "not_found"
    status = 404


class WorkflowExists(DomainError):
    """A workflow of that name exists; publish a new version of it."""

    code = "workflow_exists"
    status = 409


class DefinitionIdMismatch(DomainError):
    """The definition's id must be the workflow's name."""

    code = "definition_id_mismatch"
    status = 400


class TooManyTaskClasses(DomainError):
    """The tenant has too many different combinations of executor kind and required labels."""

    code = "too_many_task_classes"
    status = 409
