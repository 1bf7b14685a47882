from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from platform_site.demo.client import DemoClient


class Starts:
    """Takes starts of runs, and loses the answer to the first."""

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.runs: dict[str | None, str] = {}
        starts = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                key = self.headers["Idempotency-Key"]
                starts.keys.append(key)
                run_id = starts.runs.setdefault(key, f"run-{len(starts.runs)}")
                if len(starts.keys) == 1:
                    return
                self.send_response(202)
                self.end_headers()
                self.wfile.write(json.dumps({"run_id": run_id}).encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def starts() -> Iterator[Starts]:
    served = Starts()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


def test_a_start_whose_answer_is_lost_is_the_same_run_when_it_is_repeated(starts: Starts) -> None:
    client = DemoClient(starts.url, "token")
    assert client.start("flow", 1, {}) == "run-0"
    assert len(starts.keys) == 2, "it was repeated"
    assert starts.keys[0] == starts.keys[1] is not None
    assert client.start("flow", 1, {}) == "run-1", "another start is another run"
