"""The control plane as the worker sees it: an interface, and its implementation over HTTP.

Errors, by what the worker does about them:

    ControlPlaneError
      Unavailable      no answer, or 5xx, or too many requests: ask again later
      SessionEnded     this session will never be accepted again: stop and exit
      Refused          this request will never be accepted: drop it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import requests

from workers.executors.base import ExecutionRequest
from workers.messages import (
    ClaimAnswer,
    CompletionAnswer,
    HeartbeatAnswer,
    Lease,
    LeaseStatus,
    Refill,
    Registration,
    WorkerSession,
)
from workflows.kernel import canonical
from workflows.kernel.canonical import JsonInvalid, JsonValue

PROTOCOL_VERSION = 1
CONNECT_SECONDS = 3.05
ANSWER_SECONDS = 15.0
_SESSION_CODES = frozenset({"worker_session_invalid", "worker_protocol_unsupported"})
_ANSWER_DEPTH = canonical.MAX_DEPTH + 8  # an input of full depth lies a few levels down in the answer
_LATER_STATUSES = frozenset({408, 425, 429})


class ControlPlaneError(Exception):
    """A call to the control plane did not succeed; `code` is its error code, or names what went wrong."""

    def __init__(self, code: str, message: str = "", *, status: int = 0, retry_after_ms: int = 0) -> None:
        super().__init__(message or code)
        self.code = code
        self.status = status
        self.retry_after_ms = retry_after_ms


class Unavailable(ControlPlaneError):
    """No usable answer; whether the call had an effect is unknown. `status` 0: the network gave none."""


class SessionEnded(ControlPlaneError):
    """The control plane does not know this session (any more), or not this protocol."""


class Refused(ControlPlaneError):
    """A definite no to this request; it had no effect."""


class ControlPlane(Protocol):
    """Every call a registered worker makes. Each raises `ControlPlaneError`."""

    def claim(self, *, slots: int, wait_ms: int, claim_no: int) -> ClaimAnswer:
        """Ask for at most `slots` leases, waiting up to `wait_ms` for the first."""

    def heartbeat(self, *, leases: Sequence[tuple[str, str]], answered_through: int) -> HeartbeatAnswer:
        """Renew leases, given as (dispatch id, lease token)."""

    def complete(self, items: Sequence[str], refill: Refill | None) -> CompletionAnswer:
        """Submit results; `items` are the encoded items of `completion_item`."""

    def release(self, dispatch_id: str, lease_token: str) -> None:
        """Give back a lease whose execution never started."""

    def progress(self, dispatch_id: str, lease_token: str, *, percent: float | None, text: str) -> None:
        """Store how far an attempt is."""

    def logs(self, dispatch_id: str, lease_token: str, lines: Sequence[tuple[str, str]]) -> bool:
        """Store log lines (level, text); True when the control plane takes no more for this attempt."""

    def drain(self) -> str:
        """Announce that no more work is wanted; the state of the worker (draining or stopped)."""

    def close(self) -> None:
        """Give up the connections."""


def completion_item(lease: Lease, result: str) -> str:
    """The encoded item of one result; `result` is the canonical text of `outcome.encode`."""
    proof = f'"dispatch_id":{json.dumps(lease.dispatch_id)},"lease_token":{json.dumps(lease.lease_token)}'
    return f'{{{proof},"result":{result}}}'


class _Channel:
    """One HTTP session with its own connection, and requests prepared once per address.

    `requests` looks for proxies, certificates and a netrc file on every call; a worker makes thousands of
    calls to one server, so that is decided once.
    """

    def __init__(self, session: requests.Session, server_url: str, token: str) -> None:
        self._session = session
        self._base = f"{server_url.rstrip('/')}/api/v1/"
        self._settings = session.merge_environment_settings(self._base, {}, None, None, None)
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "User-Agent": "workload-worker/1",
            "X-Worker-Protocol-Version": str(PROTOCOL_VERSION),
        }
        self._prepared: dict[str, requests.PreparedRequest] = {}

    def post(
        self, path: str, body: str, *, seconds: float = ANSWER_SECONDS, keep: bool = True
    ) -> dict[str, Any]:
        """Send `body` and return the JSON object of a 2xx answer; `keep` addresses that are used again."""
        request = self._request(path, keep=keep)
        content = body.encode()
        request.body = content
        request.headers["Content-Length"] = str(len(content))
        try:
            response = self._session.send(
                request, timeout=(CONNECT_SECONDS, seconds), allow_redirects=False, **self._settings
            )
            status, answer = response.status_code, response.content
        except requests.RequestException as error:
            raise Unavailable("no_answer", f"{type(error).__name__} calling {path}") from error
        if 200 <= status < 300:
            return _parsed(answer, path)
        raise _refusal(status, answer, response.headers)

    def _request(self, path: str, *, keep: bool) -> requests.PreparedRequest:
        template = self._prepared.get(path)
        if template is None:
            template = requests.PreparedRequest()
            template.prepare(method="POST", url=self._base + path, headers=self._headers, data=b"{}")
            if keep:
                self._prepared[path] = template
        return template.copy()

    def close(self) -> None:
        self._session.close()


def _parsed(answer: bytes, path: str) -> dict[str, Any]:
    try:
        value = canonical.loads(answer, max_depth=_ANSWER_DEPTH)
    except JsonInvalid as error:
        raise Unavailable("answer_invalid", f"{path} answered with something that is not JSON") from error
    if not isinstance(value, dict):
        raise Unavailable("answer_invalid", f"{path} answered with something that is not an object")
    return value


def _refusal(status: int, answer: bytes, headers: Mapping[str, str]) -> ControlPlaneError:
    """The error that a non-2xx answer stands for; the body may be anything, a proxy may have written it."""
    code, message = f"http_{status}", f"the control plane answered {status}"
    try:
        body = canonical.loads(answer)
    except JsonInvalid:
        body = None
    if isinstance(body, dict) and isinstance(error := body.get("error"), dict):
        code, message = str(error.get("code") or code), str(error.get("message") or message)
    if status == 401 or code in _SESSION_CODES:
        return SessionEnded(code, message, status=status)
    if status >= 500 or status in _LATER_STATUSES or status < 400:
        return Unavailable(code, message, status=status, retry_after_ms=_retry_after(headers))
    return Refused(code, message, status=status)


def _retry_after(headers: Mapping[str, str]) -> int:
    seconds = headers.get("Retry-After", "")
    return int(seconds) * 1000 if seconds.isdigit() else 0


def register(
    server_url: str, enrolment_token: str, registration: Registration, session: requests.Session
) -> WorkerSession:
    """Make this process known; every process start is a new session."""
    channel = _Channel(session, server_url, enrolment_token)
    body: JsonValue = {
        "display_name": registration.display_name,
        "protocol_version": PROTOCOL_VERSION,
        "executor_kinds": list(registration.executor_kinds),
        "max_concurrency": registration.max_concurrency,
        "labels": dict(registration.labels),
        "drills": registration.drills,
    }
    answer = channel.post("workers/register", canonical.dumps(body))
    try:
        return WorkerSession(
            worker_id=str(answer["worker_id"]),
            session_token=str(answer["session_token"]),
            heartbeat_interval_ms=int(answer["heartbeat_interval_ms"]),
            lease_duration_ms=int(answer["lease_duration_ms"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable("answer_invalid", "the registration answer does not follow the protocol") from error


class HttpControlPlane:
    """`ControlPlane` over HTTP: claims, heartbeats, completions, reports each on their own connection."""

    def __init__(
        self,
        server_url: str,
        session: WorkerSession,
        *,
        new_session: Callable[[], requests.Session] = requests.Session,
    ) -> None:
        self._path = f"workers/{session.worker_id}"
        self._claims, self._heartbeats, self._completions, self._reports = (
            _Channel(new_session(), server_url, session.session_token) for _ in range(4)
        )
        # No answer within a heartbeat interval is worth waiting for: the next heartbeat says the same and
        # more.
        self._heartbeat_seconds = max(1.0, session.heartbeat_interval_ms / 1000)

    def claim(self, *, slots: int, wait_ms: int, claim_no: int) -> ClaimAnswer:
        body = f'{{"slots":{slots},"wait_ms":{wait_ms},"claim_no":{claim_no}}}'
        answer = self._claims.post(f"{self._path}/claims", body, seconds=ANSWER_SECONDS + wait_ms / 1000)
        waited = answer.get("waited_ms")
        return ClaimAnswer(
            leases=_leases(answer),
            retry_after_ms=_milliseconds(answer.get("retry_after_ms")),
            waited_ms=waited if isinstance(waited, int) else None,
        )

    def heartbeat(self, *, leases: Sequence[tuple[str, str]], answered_through: int) -> HeartbeatAnswer:
        listed = [{"dispatch_id": dispatch, "lease_token": token} for dispatch, token in leases]
        body = json.dumps({"leases": listed, "answered_through": answered_through})
        answer = self._heartbeats.post(f"{self._path}/heartbeat", body, seconds=self._heartbeat_seconds)
        try:
            return HeartbeatAnswer(
                worker_state=str(answer.get("worker_state", "")),
                leases=tuple(
                    LeaseStatus(
                        str(entry["dispatch_id"]),
                        str(entry["status"]),
                        _milliseconds(entry.get("lease_remaining_ms")),
                    )
                    for entry in answer.get("leases", ())
                ),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise Unavailable(
                "answer_invalid", "the heartbeat answer does not follow the protocol"
            ) from error

    def complete(self, items: Sequence[str], refill: Refill | None) -> CompletionAnswer:
        asked = f',"refill":{{"slots":{refill.slots},"claim_no":{refill.claim_no}}}' if refill else ""
        answer = self._completions.post(
            f"{self._path}/completions", f'{{"items":[{",".join(items)}]{asked}}}'
        )
        try:
            outcomes = {str(entry["dispatch_id"]): str(entry["outcome"]) for entry in answer["outcomes"]}
            refused = answer.get("refill") or {}
            code, later = str(refused.get("code", "")), _milliseconds(refused.get("retry_after_ms"))
        except (AttributeError, KeyError, TypeError) as error:
            raise Unavailable(
                "answer_invalid", "the completion answer does not follow the protocol"
            ) from error
        return CompletionAnswer(outcomes, _leases(answer), code, later)

    def release(self, dispatch_id: str, lease_token: str) -> None:
        body = canonical.dumps({"lease_token": lease_token})
        self._reports.post(f"{self._path}/leases/{dispatch_id}/release", body, keep=False)

    def progress(self, dispatch_id: str, lease_token: str, *, percent: float | None, text: str) -> None:
        body: dict[str, JsonValue] = {"lease_token": lease_token}
        if percent is not None:
            body["percent"] = percent
        if text:
            body["text"] = text
        self._reports.post(f"{self._path}/leases/{dispatch_id}/progress", canonical.dumps(body), keep=False)

    def logs(self, dispatch_id: str, lease_token: str, lines: Sequence[tuple[str, str]]) -> bool:
        body: JsonValue = {
            "lease_token": lease_token,
            "lines": [{"level": level, "text": text} for level, text in lines],
        }
        path = f"{self._path}/leases/{dispatch_id}/logs"
        return bool(self._reports.post(path, canonical.dumps(body), keep=False).get("truncated", False))

    def drain(self) -> str:
        return str(self._reports.post(f"{self._path}/drain", "{}", keep=False).get("state", ""))

    def close(self) -> None:
        """Close the connections; a call in flight in another thread fails."""
        for channel in (self._claims, self._heartbeats, self._completions, self._reports):
            channel.close()


def _milliseconds(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) else 0


def _leases(answer: Mapping[str, Any]) -> tuple[Lease, ...]:
    try:
        return tuple(_lease(entry) for entry in answer.get("leases", ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unavailable("answer_invalid", "a lease in the answer does not follow the protocol") from error


def _lease(entry: Mapping[str, Any]) -> Lease:
    return Lease(
        dispatch_id=str(entry["dispatch_id"]),
        lease_token=str(entry["lease_token"]),
        executor_kind=str(entry["executor_kind"]),
        request=ExecutionRequest(
            run_id=str(entry["run_id"]),
            workflow_id=str(entry["workflow_id"]),
            workflow_version=int(entry["workflow_version"]),
            task_key=str(entry["task_key"]),
            action=str(entry["action"]),
            input=entry["input"],
            attempt=int(entry["attempt"]),
            generation=int(entry["generation"]),
            idempotency_key=str(entry["idempotency_key"]),
            dispatch_id=str(entry["dispatch_id"]),
            traceparent=entry.get("traceparent"),
        ),
        lease_remaining_ms=int(entry["lease_remaining_ms"]),
        attempt_remaining_ms=int(entry["attempt_remaining_ms"]),
    )
