"""Who may do what. A view names one of these for each method; what names none is closed.

Without a principal the answer is 401 with a challenge, with the wrong one 403.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from platform_site.access.principal import principal_of
from platform_site.access.roles import Role

if TYPE_CHECKING:  # APIView reads its defaults, this module among them, while it is being imported
    from rest_framework.views import APIView


class Closed(BasePermission):
    """Nobody. The default, so that a view that forgot to say who may use it can be used by no one."""

    message = "Nobody may do this."

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        return False


class Open(BasePermission):
    """Anybody, without a credential: for what holds nothing of any tenant."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        return True


class Authenticated(BasePermission):
    """Any principal, whatever its role."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        return principal_of(request) is not None


class _Reaches(BasePermission):
    needed: ClassVar[Role]

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        principal = principal_of(request)
        return principal is not None and principal.reaches(self.needed)


class CanView(_Reaches):
    """Reads: viewers, operators, admins."""

    message = "This needs the role viewer, operator or admin."
    needed = Role.VIEWER


class CanOperate(_Reaches):
    """Writes: operators and admins."""

    message = "This needs the role operator or admin."
    needed = Role.OPERATOR


class CanAdminister(_Reaches):
    """What changes who may do what: admins."""

    message = "This needs the role admin."
    needed = Role.ADMIN


class CanEnrol(BasePermission):
    """Registering a worker: worker-enrolment tokens and nothing else."""

    message = "This needs a worker-enrolment token."

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002 framework's signature
        principal = principal_of(request)
        return principal is not None and principal.role == Role.WORKER_ENROLMENT
