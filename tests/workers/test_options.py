"""Options: where they come from, what is refused."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest

from tests.workers.conftest import ROOT
from workers.options import OptionsInvalid, WorkerOptions, add_arguments, from_arguments


def parsed(*flags: str, **env: str) -> WorkerOptions:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_arguments(vars(parser.parse_args(flags)), {"WORKLOAD_ENROLMENT_TOKEN": "t", **env})


def test_the_defaults() -> None:
    options = parsed()
    assert options.server_url == "http://127.0.0.1:8000"
    assert options.kinds == ("python",)
    assert (options.concurrency, options.shutdown_grace_ms, options.margin_ms) == (16, 30_000, 1_000)
    assert options.name
    assert not options.drills
    assert dict(options.labels) == {}


def test_the_environment() -> None:
    options = parsed(
        WORKLOAD_SERVER_URL="https://plane.example",
        WORKLOAD_WORKER_NAME="alpha",
        WORKLOAD_WORKER_KINDS="mock, python,mock",
        WORKLOAD_WORKER_CONCURRENCY="3",
        WORKLOAD_WORKER_LABELS="zone=a,gpu=no",
        WORKLOAD_WORKER_SHUTDOWN_GRACE_MS="5000",
        WORKLOAD_WORKER_ACTION_MODULES="one, two",
    )
    assert options.server_url == "https://plane.example"
    assert (options.name, options.kinds, options.concurrency) == ("alpha", ("mock", "python"), 3)
    assert dict(options.labels) == {"zone": "a", "gpu": "no"}
    assert (options.shutdown_grace_ms, options.action_modules) == (5_000, ("one", "two"))


def test_flags_win() -> None:
    options = parsed(
        "--kind", "mock", "--concurrency", "5", "--label", "a=b", WORKLOAD_WORKER_CONCURRENCY="3",
        WORKLOAD_WORKER_LABELS="zone=a",
    )  # fmt: skip
    assert (options.kinds, options.concurrency, dict(options.labels)) == (("mock",), 5, {"a": "b"})


def test_drills_are_told_in_a_label() -> None:
    assert dict(parsed("--drills").labels) == {"drills": "true"}


@pytest.mark.parametrize(
    ("flags", "env", "says"),
    [
        (["--concurrency", "1025"], {}, "--concurrency takes 1 to 1024"),
        ([], {"WORKLOAD_WORKER_CONCURRENCY": "many"}, "WORKLOAD_WORKER_CONCURRENCY takes a whole number"),
        ([], {"WORKLOAD_WORKER_DRILLS": "perhaps"}, "WORKLOAD_WORKER_DRILLS takes true or false"),
        (["--kind", "Not A Kind"], {}, "--kind"),
        (["--label", "nothing"], {}, "--label takes KEY=VALUE"),
        (["--label", "a=b c"], {}, "is not a label"),
        (["--name", "x" * 129], {}, "--name takes"),
        (["--shutdown-grace-ms", "-1"], {}, "--shutdown-grace-ms takes"),
        (["--margin-ms", "1"], {}, "--margin-ms takes"),
        (["--server-url", "ftp://x"], {}, "not an http or https address"),
        (["--server-url", "https://x:99999"], {}, "--server-url"),
        (["--server-url", "https://x/?a=b"], {}, "no query"),
        (["--server-url", "https://me:secret@x"], {}, "no user name"),
        (["--server-url", "http://10.0.0.7:8000"], {}, "plain http"),
        ([], {"WORKLOAD_ENROLMENT_TOKEN": ""}, "WORKLOAD_ENROLMENT_TOKEN is not set"),
        ([], {"WORKLOAD_ENROLMENT_TOKEN": "a\nb"}, "not text"),
    ],
)
def test_wrong_values_are_refused(flags: list[str], env: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionsInvalid, match=says):
        parsed(*flags, **env)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "http://[::1]:8000", "http://127.0.0.9", "https://x"]
)
def test_addresses_that_are_safe(url: str) -> None:
    assert parsed("--server-url", url).server_url == url


def test_plain_http_can_be_insisted_on() -> None:
    assert parsed("--server-url", "http://web:8000", "--insecure-http").insecure_http


def test_the_token_is_in_no_text() -> None:
    assert "secret-token" not in repr(parsed(WORKLOAD_ENROLMENT_TOKEN="secret-token"))


def test_a_worker_needs_no_django_and_no_other_app() -> None:
    """What `python -m workers` imports, seen in a process of its own."""
    program = (
        "import sys, workers.__main__, workers.standby, workers.actions.documents\n"
        "apps = {'django', 'rest_framework', 'dispatch', 'agents', 'platform_site'}\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "ours = [name for name in sys.modules if name.startswith('workflows.')]\n"
        "ledger = [name for name in ours if not name.startswith('workflows.kernel')]\n"
        "sys.exit(str(sorted(apps & loaded) + ledger) if apps & loaded or ledger else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
