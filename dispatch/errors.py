"""What a worker's request can be refused for.

DomainError
  - WorkerSessionInvalid        401 worker_session_invalid
  - WorkerProtocolUnsupported   400 worker_protocol_unsupported
  - WorkerDraining              409 worker_draining
  - WorkerCapacityExceeded      409 worker_capacity_exceeded
  - LeaseLost                   409 lease_lost
  - ResultConflict              409 result_conflict
  - Contended                   503 unavailable
  - WorkerNotFound              404 not_found
"""

from __future__ import annotations

from platform_site.api.errors import DomainError


class WorkerSessionInvalid(DomainError):
    """The worker's session is unknown or over. Register again."""

    code = "worker_session_invalid"
    status = 401


class WorkerProtocolUnsupported(DomainError):
    """This control plane speaks version 1 of the worker protocol."""

    code = "worker_protocol_unsupported"
    status = 400


class WorkerDraining(DomainError):
    """A draining worker takes no more work."""

    code = "worker_draining"
    status = 409


class WorkerCapacityExceeded(DomainError):
    """More slots were asked for than the worker registered."""

    code = "worker_capacity_exceeded"
    status = 409


class LeaseLost(DomainError):
    """The lease is over: it ran out, was taken back, or was never this worker's. Nothing was changed."""

    code = "lease_lost"
    status = 409


class ResultConflict(DomainError):
    """Another result was accepted under this lease. Nothing was changed."""

    code = "result_conflict"
    status = 409


class Contended(DomainError):
    """The run is busy. Send the same request again."""

    code = "unavailable"
    status = 503
    base_headers = {"Retry-After": "1"}


class WorkerNotFound(DomainError):
    """There is no such worker."""

    code = "not_found"
    status = 404
