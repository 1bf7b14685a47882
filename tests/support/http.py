"""A client that speaks to the API as programs do, and holds every answer to the API's description."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from platform_site.access.models import Tenant
from platform_site.access.operations.create_token import create_token
from platform_site.access.roles import Role
from platform_site.access.tenants import default_tenant
from tests.support.openapi import check_answer

PREFIX = "/api/v1/"


class Answered:
    """A response: its status, its headers and its JSON."""

    def __init__(self, method: str, path: str, response: HttpResponse) -> None:
        self.response = response
        self.status = response.status_code
        self.headers = response.headers
        check_answer(method, PREFIX + path, self.status, self.json)

    @property
    def json(self) -> Any:
        return json.loads(self.response.content)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["error"]["code"])

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Path and code of each detail of an error."""
        return [(each["path"], each["code"]) for each in self.json["error"]["details"]]

    def __repr__(self) -> str:
        return f"<{self.status} {self.response.content[:400]!r}>"


class Api:
    """Calls below /api/v1 with one token."""

    def __init__(self, token: str | None = None, headers: dict[str, str] | None = None) -> None:
        self.token = token
        self.headers = headers or {}
        self._client = Client(raise_request_exception=False)

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> Answered:
        response = self._client.get(PREFIX + path, query or {}, headers=self._headers(headers))
        return Answered("GET", path, response)

    def post(self, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Answered:
        """POST a JSON value, or `raw` bytes as they are; with neither, an empty body."""
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        response = self._client.post(
            PREFIX + path, content, content_type="application/json", headers=self._headers(headers)
        )
        return Answered("POST", path, response)

    def send(self, method: str, path: str, **headers: str) -> Answered:
        return Answered(
            method, path, self._client.generic(method, PREFIX + path, headers=self._headers(headers))
        )

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        own = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {**own, **self.headers, **{name.replace("_", "-"): value for name, value in more.items()}}


PROTOCOL = {"X-Worker-Protocol-Version": "1"}


def api_as(role: str, *, tenant: Tenant | None = None) -> Api:
    """A client with a fresh token of this role."""
    token = create_token(tenant=tenant or default_tenant(), name=f"test {role}", role=Role(role))
    return Api(token.plain, PROTOCOL if role == Role.WORKER_ENROLMENT else None)


class WorkerApi:
    """A registered worker over HTTP: counts its claims, remembers its leases."""

    def __init__(self, *, tenant: Tenant | None = None, **registration: Any) -> None:
        enrolment = api_as("worker-enrolment", tenant=tenant)
        body = {
            "display_name": "http-worker",
            "protocol_version": 1,
            "executor_kinds": ["mock", "python"],
            "max_concurrency": 16,
            **registration,
        }
        answer = enrolment.post("workers/register", body)
        assert answer.status == 201, answer
        self.id: str = answer.json["worker_id"]
        self.api = Api(answer.json["session_token"], PROTOCOL)
        self.calls = 0

    def post(self, call: str, body: Any = None, **more: Any) -> Answered:
        """A call on this worker's own address."""
        return self.api.post(f"workers/{self.id}/{call}", body, **more)

    def claim(self, slots: int = 1, *, claim_no: int | None = None, wait_ms: int = 0) -> Answered:
        if claim_no is None:
            self.calls += 1
            claim_no = self.calls
        return self.post("claims", {"slots": slots, "wait_ms": wait_ms, "claim_no": claim_no})

    def leases(self, slots: int = 1) -> list[dict[str, Any]]:
        """The leases of a claim that must succeed."""
        answer = self.claim(slots)
        assert answer.status == 200, answer
        found: list[dict[str, Any]] = answer.json["leases"]
        return found

    def complete(self, lease: dict[str, Any], **result: Any) -> Answered:
        """One result; success without one."""
        body = {"lease_token": lease["lease_token"], "result": {"kind": "success", **result}}
        return self.post(f"leases/{lease['dispatch_id']}/complete", body)

    def completions(
        self, results: list[tuple[dict[str, Any], Any]], refill: dict[str, Any] | None = None
    ) -> Answered:
        """Many results."""
        items = [
            {"dispatch_id": lease["dispatch_id"], "lease_token": lease["lease_token"], "result": result}
            for lease, result in results
        ]
        return self.post("completions", {"items": items} | ({"refill": refill} if refill else {}))
