"""A control plane in memory behind real HTTP: the worker's side of the protocol without a database.

It keeps the rules a worker relies on: claim numbers are answered again, leases expire, only the current lease
is settled, what a heartbeat does not list is lost. Faults are scripted per route and happen once each.
"""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
WAIT_SECONDS = 30.0


@dataclass
class Call:
    """One request as it arrived, and what it was answered (0: the connection was cut)."""

    route: str
    body: Body
    at: float
    status: int = 0
    answer: Body = field(default_factory=dict)


@dataclass
class Dispatch:
    """One task on its way through the stand-in."""

    id: str
    task_key: str
    kind: str
    action: str
    input: Any
    timeout_ms: int
    state: str = "pending"
    attempt: int = 0
    token: str = ""
    claim_no: int = 0
    expires_at: float = 0.0
    deadline: float = 0.0
    result: Body | None = None
    settled: int = 0
    lines: list[tuple[str, str]] = field(default_factory=list)
    progress: list[Body] = field(default_factory=list)


class Refusal(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class Cut(Exception):
    """The connection ends without an answer."""


class ControlPlaneStandIn:
    """State and rules; `serve` puts HTTP in front of it."""

    def __init__(self, *, heartbeat_ms: int = 200, lease_ms: int = 2_000, tells_wait: bool = True) -> None:
        self.heartbeat_ms, self.lease_ms, self.tells_wait = heartbeat_ms, lease_ms, tells_wait
        self.changed = threading.Condition()
        self.dispatches: dict[str, Dispatch] = {}
        self.pending: deque[Dispatch] = deque()
        self.calls: list[Call] = []
        self.faults: dict[str, deque[Callable[[Callable[[], Body]], Body]]] = {}
        self.state = "active"
        self.slots = 0
        self.registrations: list[Body] = []
        self.most_leased = 0
        self.url = ""
        self._numbers = itertools.count(1)

    # -- what a test does --------------------------------------------------------------------------

    def add(
        self, key: str, told: Any = None, *, kind: str = "mock", action: str = "a", timeout_ms: int = 60_000
    ) -> Dispatch:
        """Queue a task and wake a waiting claim."""
        with self.changed:
            dispatch = Dispatch(f"d{next(self._numbers)}", key, kind, action, told, timeout_ms)
            self.dispatches[dispatch.id] = dispatch
            self.pending.append(dispatch)
            self.changed.notify_all()
            return dispatch

    def revoke(self, dispatch: Dispatch) -> None:
        """End a lease as a cancel does."""
        with self.changed:
            dispatch.state = "canceled"
            self.changed.notify_all()

    def fault(self, route: str, *faults: Callable[[Callable[[], Body]], Body]) -> None:
        """The next calls of `route` meet these, one each."""
        self.faults.setdefault(route, deque()).extend(faults)

    def wait(self, holds: Callable[[], object], what: str) -> None:
        """Wait until `holds`, with a deadline that fails the test."""
        with self.changed:
            assert self.changed.wait_for(holds, WAIT_SECONDS), f"never happened: {what}"

    def made(self, route: str) -> list[Call]:
        """The calls of one route so far."""
        return [call for call in self.calls if call.route == route]

    def leased(self) -> list[Dispatch]:
        """What is leased now."""
        return [dispatch for dispatch in self.dispatches.values() if dispatch.state == "leased"]

    @contextmanager
    def serve(self) -> Iterator[ControlPlaneStandIn]:
        """Listen on a free port."""
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                plane._answer(self, self.path.removeprefix("/api/v1/workers/"), body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            with self.changed:
                self.state = "stopped"
                self.changed.notify_all()
            server.shutdown()
            server.server_close()
            thread.join()

    # -- HTTP --------------------------------------------------------------------------------------

    def _answer(self, handler: BaseHTTPRequestHandler, path: str, body: Body) -> None:
        route = path.rsplit("/", 1)[-1]
        call = Call(route, body, time.monotonic())
        handle = self._route(path)
        try:
            with self.changed:
                self.calls.append(call)
                self.changed.notify_all()
                faults = self.faults.get(route)
                fault = faults.popleft() if faults else None
            self._check_session(route, handler.headers["Authorization"])
            call.answer = fault(lambda: handle(body)) if fault else handle(body)
            call.status = 201 if route == "register" else 200
        except Refusal as refusal:
            call.status = refusal.status
            call.answer = {
                "error": {"code": refusal.code, "message": refusal.code, "details": [], "request_id": "r"}
            }
        except Cut:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        finally:
            with self.changed:
                self.changed.notify_all()
        content = json.dumps(call.answer).encode()
        head = f"HTTP/1.1 {call.status} -\r\nContent-Length: {len(content)}\r\n\r\n"
        try:
            handler.wfile.write(head.encode() + content)
        except OSError:
            handler.close_connection = True  # the worker was killed meanwhile

    def _check_session(self, route: str, authorization: str) -> None:
        expected = "enrol" if route == "register" else "session"
        if authorization != f"Bearer {expected}":
            raise Refusal(401, "unauthorized")

    def _route(self, path: str) -> Callable[[Body], Body]:
        parts = path.split("/")
        if len(parts) == 4:
            name, dispatch = parts[3], self.dispatches[parts[2]]
            return lambda body: getattr(self, f"_{name}")(dispatch, body)
        handle: Callable[[Body], Body] = getattr(self, f"_{parts[-1]}")
        return handle

    # -- the protocol ------------------------------------------------------------------------------

    def _register(self, body: Body) -> Body:
        with self.changed:
            self.registrations.append(body)
            self.slots = body["max_concurrency"]
        return {
            "worker_id": "w1", "session_token": "session", "protocol_version": 1,
            "heartbeat_interval_ms": self.heartbeat_ms, "lease_duration_ms": self.lease_ms,
        }  # fmt: skip

    def _claims(self, body: Body) -> Body:
        arrived = time.monotonic()
        with self.changed:
            repeat = any(d.claim_no == body["claim_no"] for d in self.leased())
            self.changed.wait_for(
                lambda: repeat or self.pending or self.state != "active", body["wait_ms"] / 1000
            )
            waited = {"waited_ms": int((time.monotonic() - arrived) * 1000)} if self.tells_wait else {}
            return {"leases": self._lease(body["slots"], body["claim_no"]), **waited}

    def _lease(self, slots: int, claim_no: int) -> list[Body]:
        if self.state != "active":
            raise Refusal(409, "worker_draining")
        again = [d for d in self.leased() if d.claim_no == claim_no]
        if again:
            return [self._wire(dispatch) for dispatch in again]
        if slots > self.slots - len(self.leased()):
            raise Refusal(409, "worker_capacity_exceeded")
        now = time.monotonic()
        leases: list[Body] = []
        while self.pending and len(leases) < slots:
            dispatch = self.pending.popleft()
            dispatch.state, dispatch.claim_no = "leased", claim_no
            dispatch.attempt += 1
            dispatch.token = f"t{dispatch.id}-{dispatch.attempt}"
            dispatch.deadline = now + dispatch.timeout_ms / 1000
            dispatch.expires_at = min(now + self.lease_ms / 1000, dispatch.deadline)
            leases.append(self._wire(dispatch))
        self.most_leased = max(self.most_leased, len(self.leased()))
        return leases

    def _wire(self, dispatch: Dispatch) -> Body:
        now = time.monotonic()
        return {
            "dispatch_id": dispatch.id, "lease_token": dispatch.token, "generation": 100 + dispatch.attempt,
            "idempotency_key": f"run/{dispatch.task_key}", "run_id": "run", "workflow_id": "flow",
            "workflow_version": 1, "task_key": dispatch.task_key, "executor_kind": dispatch.kind,
            "action": dispatch.action, "input": dispatch.input, "attempt": dispatch.attempt,
            "lease_remaining_ms": int((dispatch.expires_at - now) * 1000),
            "attempt_remaining_ms": int((dispatch.deadline - now) * 1000),
        }  # fmt: skip

    def _valid(self, dispatch: Dispatch, token: str) -> bool:
        now = time.monotonic()
        mine = dispatch.state == "leased" and dispatch.token == token
        return mine and now < dispatch.expires_at and now < dispatch.deadline

    def _heartbeat(self, body: Body) -> Body:
        with self.changed:
            if self.state == "stopped":
                raise Refusal(401, "worker_session_invalid")
            statuses = []
            for entry in body["leases"]:
                dispatch = self.dispatches.get(entry["dispatch_id"])
                status: Body = {"dispatch_id": entry["dispatch_id"], "status": "unknown"}
                if dispatch is not None and self._valid(dispatch, entry["lease_token"]):
                    now = time.monotonic()
                    dispatch.expires_at = min(now + self.lease_ms / 1000, dispatch.deadline)
                    remaining = int((dispatch.expires_at - now) * 1000)
                    status |= {"status": "renewed", "lease_remaining_ms": remaining}
                elif dispatch is not None:
                    status["status"] = "revoked"
                statuses.append(status)
            listed = {entry["dispatch_id"] for entry in body["leases"]}
            for dispatch in self.leased():
                if dispatch.claim_no <= body["answered_through"] and dispatch.id not in listed:
                    dispatch.state = "lost"
            return {"worker_state": self.state, "leases": statuses}

    def _completions(self, body: Body) -> Body:
        with self.changed:
            outcomes = [
                {
                    "dispatch_id": i["dispatch_id"],
                    "outcome": self._settle(self.dispatches[i["dispatch_id"]], i),
                }
                for i in body["items"]
            ]
            answer: Body = {"outcomes": outcomes, "leases": []}
            if refill := body.get("refill"):
                try:
                    answer["leases"] = self._lease(refill["slots"], refill["claim_no"])
                except Refusal as refusal:
                    answer["refill"] = {"code": refusal.code, "retry_after_ms": 50}
            return answer

    def _settle(self, dispatch: Dispatch, item: Body) -> str:
        if dispatch.state == "completed" and dispatch.token == item["lease_token"]:
            return "replayed" if dispatch.result == item["result"] else "result_conflict"
        if not self._valid(dispatch, item["lease_token"]):
            return "lease_lost"
        dispatch.state, dispatch.result = "completed", item["result"]
        dispatch.settled += 1
        self._stop_if_drained()
        return "applied"

    def _release(self, dispatch: Dispatch, body: Body) -> Body:
        with self.changed:
            if not self._valid(dispatch, body["lease_token"]):
                raise Refusal(409, "lease_lost")
            dispatch.state = "released"
            self._stop_if_drained()
            return {"outcome": "applied"}

    def _progress(self, dispatch: Dispatch, body: Body) -> Body:
        with self.changed:
            if not self._valid(dispatch, body["lease_token"]):
                raise Refusal(409, "lease_lost")
            dispatch.progress.append({key: body[key] for key in ("percent", "text") if key in body})
            return {}

    def _logs(self, dispatch: Dispatch, body: Body) -> Body:
        with self.changed:
            if not self._valid(dispatch, body["lease_token"]):
                raise Refusal(409, "lease_lost")
            dispatch.lines += [(line["level"], line["text"]) for line in body["lines"]]
            return {"accepted": len(body["lines"]), "truncated": False}

    def _drain(self, _body: Body) -> Body:
        with self.changed:
            self.state = "draining" if self.state == "active" else self.state
            self._stop_if_drained()
            return {
                "worker_id": "w1",
                "display_name": "w",
                "state": self.state,
                "active_leases": len(self.leased()),
            }

    def _stop_if_drained(self) -> None:
        if self.state == "draining" and not self.leased():
            self.state = "stopped"


def unavailable(_handle: Callable[[], Body]) -> Body:
    """503 without effect."""
    raise Refusal(503, "unavailable")


def broken(_handle: Callable[[], Body]) -> Body:
    """500 without effect."""
    raise Refusal(500, "internal_error")


def cut_before(_handle: Callable[[], Body]) -> Body:
    """The request is lost."""
    raise Cut


def cut_after(handle: Callable[[], Body]) -> Body:
    """The request takes effect, its answer is lost."""
    handle()
    raise Cut


def refused(status: int, code: str) -> Callable[[Callable[[], Body]], Body]:
    """An error answer without effect."""

    def fault(_handle: Callable[[], Body]) -> Body:
        raise Refusal(status, code)

    return fault


def held_until(event: threading.Event) -> Callable[[Callable[[], Body]], Body]:
    """The request is worked on only once `event` is set."""

    def fault(handle: Callable[[], Body]) -> Body:
        assert event.wait(WAIT_SECONDS), "the test never let the call go on"
        return handle()

    return fault
