"""Who a request acts as, once its credential was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from platform_site.access.roles import Role, reaches

if TYPE_CHECKING:  # pure at run time
    from django.http import HttpRequest
    from rest_framework.request import Request

PrincipalKind = Literal["token", "session", "user"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Stands in for a Django user as `request.user`.

    `id` names the account, not the credential: it survives the rotation of a token. `kind` is `token` (an
    API token), `session` (a worker's session) or `user` (a person signed in with Django). `role` is a value
    of `Role`, or a word of the app that authenticated a session.
    """

    id: str
    kind: PrincipalKind
    tenant_id: int
    tenant_slug: str
    role: str
    name: str

    @property
    def pk(self) -> str:
        """What throttles key on."""
        return self.id

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def is_anonymous(self) -> bool:
        return False

    @property
    def is_active(self) -> bool:
        return True

    def reaches(self, needed: Role) -> bool:
        """Whether this principal may do what `needed` may do."""
        return reaches(self.role, needed)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def principal_of(request: Request | HttpRequest) -> Principal | None:
    """The principal of an authenticated request; None for anybody else."""
    # To the type checker `user` is a Django user, which the credential classes replace.
    user = cast("object", request.user)
    return user if isinstance(user, Principal) else None
