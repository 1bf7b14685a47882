"""The roles a credential can have. Pure: no Django, so that anything may import it.

The first three are ordered (an operator may do what a viewer may). `worker-enrolment` stands apart: it can
register workers and nothing else, and no other role can register workers.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER_ENROLMENT = "worker-enrolment"


LADDER: tuple[Role, ...] = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)


def reaches(role: str, needed: Role) -> bool:
    """Whether `role` stands at `needed` or above it on the ladder; roles off the ladder reach nothing."""
    if role not in LADDER or needed not in LADDER:
        return False
    return LADDER.index(Role(role)) >= LADDER.index(needed)
