"""The options of a worker process: flags, then environment, then defaults; refused with a clear sentence."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")


class OptionsInvalid(ValueError):
    """An option or environment variable cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Everything a worker needs to know; validated when made."""

    server_url: str
    enrolment_token: str = field(repr=False)
    name: str
    kinds: tuple[str, ...] = ("python",)
    concurrency: int = 16
    labels: Mapping[str, str] = field(default_factory=dict)
    shutdown_grace_ms: int = 30_000
    margin_ms: int = 1_000
    drills: bool = False
    insecure_http: bool = False
    standby: bool = True
    action_modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_url(self.server_url, insecure=self.insecure_http)
        _require(
            bool(self.enrolment_token), "WORKLOAD_ENROLMENT_TOKEN is not set: a worker registers with it"
        )
        _require(
            self.enrolment_token.isascii() and self.enrolment_token.isprintable(),
            "the enrolment token is not text",
        )
        _require(
            1 <= len(self.name) <= 128 and self.name.isprintable(),
            "--name takes 1 to 128 printable characters",
        )
        _require(1 <= len(self.kinds) <= 16, "--kind: a worker takes 1 to 16 kinds")
        for kind in self.kinds:
            _require(bool(_KIND.fullmatch(kind)), f"--kind: {kind!r} is not a name of an executor kind")
        _require(1 <= self.concurrency <= 1024, f"--concurrency takes 1 to 1024, not {self.concurrency}")
        _require(0 <= self.shutdown_grace_ms <= 600_000, "--shutdown-grace-ms takes 0 to 600000 milliseconds")
        _require(10 <= self.margin_ms <= 60_000, "--margin-ms takes 10 to 60000 milliseconds")
        for key, value in self.labels.items():
            fits = _LABEL.fullmatch(key) and _LABEL.fullmatch(value)
            _require(bool(fits), f"--label: {key!r}={value!r} is not a label")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, for `python -m workers` and for the management command alike."""
    add = parser.add_argument
    add("--server-url", metavar="URL", help="the control plane; WORKLOAD_SERVER_URL")
    add("--name", help="display name; WORKLOAD_WORKER_NAME, default <host>-<pid>")
    add(
        "--kind",
        action="append",
        metavar="KIND",
        help="an executor kind to take, may be repeated; default python",
    )
    add("--concurrency", type=int, metavar="N", help="tasks at a time, 1 to 1024; default 16")
    add(
        "--label",
        action="append",
        metavar="KEY=VALUE",
        help="a label that tasks may require, may be repeated",
    )
    add(
        "--shutdown-grace-ms", type=int, metavar="MS", help="time to finish work after SIGTERM; default 30000"
    )
    add("--margin-ms", type=int, metavar="MS", help="safety margin before a lease ends; default 1000")
    add(
        "--drills",
        action="store_true",
        default=None,
        help="let mock tasks hang and crash this worker (tests only)",
    )
    add("--insecure-http", action="store_true", default=None, help="allow plain http to another machine")
    add("--no-standby", action="store_true", default=None, help="no second process that keeps leases alive")
    add("--action-module", action="append", metavar="MODULE", help="a module with actions, may be repeated")


def from_arguments(given: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> WorkerOptions:
    """Build the options from parsed flags; raises `OptionsInvalid`.

    The enrolment token comes from the environment only: every user of the machine can read a process's flags.
    """
    env = os.environ if environment is None else environment
    drills = bool(given.get("drills")) or _flag(env, "WORKLOAD_WORKER_DRILLS")
    labels = _labels(given.get("label") or _split(env.get("WORKLOAD_WORKER_LABELS", "")))
    if drills:
        labels["drills"] = "true"
    return WorkerOptions(
        server_url=given.get("server_url") or env.get("WORKLOAD_SERVER_URL", "http://127.0.0.1:8000"),
        enrolment_token=env.get("WORKLOAD_ENROLMENT_TOKEN", "").strip(),
        name=given.get("name")
        or env.get("WORKLOAD_WORKER_NAME", "")
        or f"{socket.gethostname()[:100]}-{os.getpid()}",
        kinds=tuple(dict.fromkeys(given.get("kind") or _split(env.get("WORKLOAD_WORKER_KINDS", "python")))),
        concurrency=_number(given.get("concurrency"), env, "WORKLOAD_WORKER_CONCURRENCY", 16),
        labels=labels,
        shutdown_grace_ms=_number(
            given.get("shutdown_grace_ms"), env, "WORKLOAD_WORKER_SHUTDOWN_GRACE_MS", 30_000
        ),
        margin_ms=_number(given.get("margin_ms"), env, "WORKLOAD_WORKER_MARGIN_MS", 1_000),
        drills=drills,
        insecure_http=bool(given.get("insecure_http")) or _flag(env, "WORKLOAD_WORKER_INSECURE_HTTP"),
        standby=not (given.get("no_standby") or _flag(env, "WORKLOAD_WORKER_NO_STANDBY")),
        action_modules=tuple(
            given.get("action_module") or _split(env.get("WORKLOAD_WORKER_ACTION_MODULES", ""))
        ),
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise OptionsInvalid(message)


def _check_url(url: str, *, insecure: bool) -> None:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise OptionsInvalid(f"--server-url: {error}") from error
    plain = parts.scheme in ("http", "https") and parts.hostname and port_is_fine
    _require(bool(plain), f"--server-url: {url!r} is not an http or https address")
    _require(not (parts.query or parts.fragment), "--server-url takes no query and no fragment")
    _require(parts.username is None, "--server-url takes no user name and no password")
    if parts.scheme == "http" and not insecure:
        message = (
            "--server-url: plain http sends tokens readable over the network; use https or --insecure-http"
        )
        _require(_is_loopback(parts.hostname or ""), message)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _number(given: int | None, env: Mapping[str, str], name: str, default: int) -> int:
    if given is not None:
        return given
    text = env.get(name, "").strip()
    if not text:
        return default
    _require(text.isascii() and text.isdigit(), f"{name} takes a whole number, not {text!r}")
    return int(text)


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower()
    _require(
        text in ("", "0", "1", "false", "true", "no", "yes"), f"{name} takes true or false, not {text!r}"
    )
    return text in ("1", "true", "yes")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        _require(bool(equals), f"--label takes KEY=VALUE, not {pair!r}")
        labels[key.strip()] = value.strip()
    return labels
