"""The control plane as the demonstration sees it: over HTTP, like any other client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from workflows.kernel.definition import compile_workflow

TIMEOUT_SECONDS = 30


class DemoClient:
    """Publishes, starts and reads. Raises requests.HTTPError with the platform's own sentence in it."""

    def __init__(self, address: str, token: str) -> None:
        self._address = f"{address}/api/v1"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"
        again = Retry(total=5, backoff_factor=0.2, status_forcelist=(503,), allowed_methods=("GET", "POST"))
        self._session.mount("http://", HTTPAdapter(max_retries=again))

    def publish(self, definition: Mapping[str, Any]) -> int:
        """Publish this definition unless the latest version is exactly it; the version's number.

        So running the demonstration again adds nothing. The key makes a repeat after a lost answer harmless.
        """
        name, own_hash = definition["id"], compile_workflow(dict(definition)).digest.hex()
        headers = {"Idempotency-Key": f"demo-{uuid4()}"}
        known = self._send("GET", f"/workflows/{name}", accept=(404,))
        if known.status_code == requests.codes.not_found:
            return int(self._send("POST", "/workflows", json=definition, headers=headers).json()["version"])
        latest = int(known.json()["latest_version"])
        if self._send("GET", f"/workflows/{name}/versions/{latest}").json()["hash"] == own_hash:
            return latest
        answer = self._send("POST", f"/workflows/{name}/versions", json=definition, headers=headers)
        return int(answer.json()["version"])

    def start(self, workflow: str, version: int, params: Mapping[str, Any]) -> str:
        """Start a run; its id. The key makes a repeat after a lost answer the same run, not a second one."""
        body = {"params": params, "labels": {"from": "demo"}}
        path = f"/workflows/{workflow}/versions/{version}/runs"
        headers = {"Idempotency-Key": f"demo-{uuid4()}"}
        return str(self._send("POST", path, json=body, headers=headers).json()["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        return dict(self._send("GET", f"/runs/{run_id}").json())

    def tasks(self, run_id: str) -> list[dict[str, Any]]:
        """All of them; the demonstration's run fits one page."""
        return list(self._send("GET", f"/runs/{run_id}/tasks?limit=200").json()["items"])

    def task(self, run_id: str, key: str) -> dict[str, Any]:
        """One task with its attempts and output."""
        return dict(self._send("GET", f"/runs/{run_id}/tasks/{key}").json())

    def leases_by_worker(self) -> dict[str, int]:
        """Display names of live workers and how many leases each holds."""
        items = self._send("GET", "/workers").json()["items"]
        return {
            worker["display_name"]: worker["active_leases"] for worker in items if worker["state"] == "active"
        }

    def _send(
        self, method: str, path: str, *, accept: tuple[int, ...] = (), **options: Any
    ) -> requests.Response:
        answer = self._session.request(method, f"{self._address}{path}", timeout=TIMEOUT_SECONDS, **options)
        if answer.status_code not in accept and not answer.ok:
            raise requests.HTTPError(
                f"{method} {path}: {answer.status_code} {answer.text[:500]}", response=answer
            )
        return answer
