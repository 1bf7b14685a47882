"""Typed reading of the environment, and the platform's own settings as one frozen object.

Every reader notes a wrong value and goes on with the default, so that one start names *all* wrong values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from workflows.kernel.format import EXECUTOR_PATTERN

MILLISECONDS_MAX = 24 * 60 * 60 * 1000
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads variables by type; collects what is wrong instead of stopping at the first.

    An empty variable counts as absent: container files set those.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.problems: list[str] = []
        self.names: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding space, or the default."""
        self.names.append(name)
        return self._values.get(name, "").strip() or default

    def integer(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number within ``least..most``."""
        raw = self.text(name)
        if not raw:
            return default
        try:
            value = int(raw)
        except ValueError:
            self.problem(name, f"{raw!r} is not a whole number")
            return default
        if not least <= value <= most:
            self.problem(name, f"{value} is outside {least}..{most}")
            return default
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """1, true, yes, on; or 0, false, no, off."""
        raw = self.text(name).lower()
        if raw in _TRUE:
            return True
        if raw in _FALSE:
            return False
        if raw:
            self.problem(name, f"{raw!r} is neither true nor false")
        return default

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """One of a few words, whatever their case."""
        raw = self.text(name, default)
        for word in allowed:
            if raw.lower() == word.lower():
                return word
        self.problem(name, f"{raw!r} is not one of {', '.join(allowed)}")
        return default

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """A list divided by commas."""
        raw = self.text(name)
        return [word for part in raw.split(",") if (word := part.strip())] if raw else list(default)

    def secret(self, name: str, generate: Callable[[], str] | None = None) -> str:
        """``NAME``, or the content of the file that ``NAME_FILE`` names, or what ``generate`` gives."""
        direct, file_name = self.text(name), self.text(f"{name}_FILE")
        if direct and file_name:
            self.problem(name, f"set either {name} or {name}_FILE, not both")
        if direct:
            return direct
        if file_name:
            try:
                content = Path(file_name).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                self.problem(f"{name}_FILE", f"cannot be read: {error}")
                return ""
            if not content:
                self.problem(f"{name}_FILE", f"{file_name} is empty")
            return content
        if generate is not None:
            return generate()
        self.problem(name, f"has no default: set {name}, or {name}_FILE to the path of a file that holds it")
        return ""

    def problem(self, name: str, sentence: str) -> None:
        """Note a wrong value; ``finish`` reports them together."""
        self.problems.append(f"{name}: {sentence}.")

    def finish(self) -> None:
        """Refuse to start if anything was wrong, naming everything that was."""
        if self.problems:
            listed = "\n".join(f"  - {problem}" for problem in self.problems)
            count = len(self.problems)
            noun = "setting is" if count == 1 else "settings are"
            raise ImproperlyConfigured(f"{count} {noun} wrong:\n{listed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """The knobs of the platform; Django's own live beside it in ``settings``. Durations are milliseconds."""

    data_dir: Path
    """Where the one-machine install keeps its database, secret key and first password."""
    process_kind: str
    """web, coordinator, worker, up, test, ... Names the process to PostgreSQL and in the logs."""
    embedded_database: bool
    """No DATABASE_URL was given: the platform runs PostgreSQL itself."""
    log_format: str
    log_level: str

    heartbeat_interval_ms: int
    lease_duration_ms: int
    offline_after_ms: int
    """Silence, while the control plane could have heard, after which a worker counts as gone."""
    coordinator_pass_ms: int
    leader_poll_ms: int
    """How often a standby tries for leadership."""
    leader_timeout_ms: int
    """How old the leader's beat may grow before a standby ends its session."""
    dispatch_limit: int
    """Pending and leased dispatches, all tenants together."""

    bind: str
    web_processes: int
    web_threads: int
    claim_waiters: int
    """Threads of one web process that may wait in a claim."""
    claim_wait_max_ms: int
    body_limit_bytes: int
    definition_limit_bytes: int
    page_size: int
    page_size_max: int
    idempotency_days: int
    executor_kinds: tuple[str, ...]
    """Kinds of executors that a published definition may name."""
    metrics_public: bool
    """Whether /metrics answers without a token: by default only where no other machine can ask."""

    @classmethod
    def read(cls, env: Environment, *, data_dir: Path, embedded: bool, process_kind: str) -> PlatformSettings:
        """Read every knob, then check those that only make sense together."""
        heartbeat = env.integer("WORKLOAD_HEARTBEAT_INTERVAL_MS", 5_000, least=100, most=MILLISECONDS_MAX)
        threads = env.integer("WORKLOAD_WEB_THREADS", 16, least=2, most=512)
        offline = env.integer("WORKLOAD_OFFLINE_AFTER_MS", 3 * heartbeat, least=100, most=MILLISECONDS_MAX)
        bind = env.text("WORKLOAD_BIND", "127.0.0.1:8000")
        settings = cls(
            data_dir=data_dir,
            process_kind=process_kind,
            embedded_database=embedded,
            log_format=env.choice("WORKLOAD_LOG_FORMAT", "text", ("text", "json")),
            log_level=env.choice("WORKLOAD_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
            heartbeat_interval_ms=heartbeat,
            lease_duration_ms=env.integer(
                "WORKLOAD_LEASE_DURATION_MS", 15_000, least=100, most=MILLISECONDS_MAX
            ),
            offline_after_ms=offline,
            coordinator_pass_ms=env.integer("WORKLOAD_COORDINATOR_PASS_MS", 1_000, least=10, most=60_000),
            leader_poll_ms=env.integer("WORKLOAD_LEADER_POLL_MS", 250, least=10, most=60_000),
            leader_timeout_ms=env.integer("WORKLOAD_LEADER_TIMEOUT_MS", 3_000, least=500, most=600_000),
            dispatch_limit=env.integer("WORKLOAD_DISPATCH_LIMIT", 10_000, least=1, most=1_000_000),
            bind=bind,
            web_processes=env.integer("WORKLOAD_WEB_PROCESSES", 2, least=1, most=256),
            web_threads=threads,
            claim_waiters=env.integer("WORKLOAD_CLAIM_WAITERS", threads // 2, least=0, most=512),
            claim_wait_max_ms=env.integer("WORKLOAD_CLAIM_WAIT_MAX_MS", 20_000, least=0, most=60_000),
            body_limit_bytes=env.integer("WORKLOAD_BODY_LIMIT_BYTES", 2**20, least=1024, most=2**30),
            definition_limit_bytes=env.integer(
                "WORKLOAD_DEFINITION_LIMIT_BYTES", 16 * 2**20, least=1024, most=2**30
            ),
            page_size=env.integer("WORKLOAD_PAGE_SIZE", 50, least=1, most=1_000),
            page_size_max=env.integer("WORKLOAD_PAGE_SIZE_MAX", 200, least=1, most=1_000),
            metrics_public=env.boolean("WORKLOAD_METRICS_PUBLIC", default=is_loopback(bind)),
            idempotency_days=env.integer("WORKLOAD_IDEMPOTENCY_DAYS", 7, least=1, most=3_650),
            executor_kinds=tuple(env.words("WORKLOAD_EXECUTOR_KINDS", ("mock", "python"))),
        )
        settings._check_together(env)
        return settings

    def _check_together(self, env: Environment) -> None:
        if self.lease_duration_ms <= 2 * self.heartbeat_interval_ms + 1_000:
            env.problem(
                "WORKLOAD_LEASE_DURATION_MS",
                f"{self.lease_duration_ms} must exceed two heartbeats plus one second "
                f"({2 * self.heartbeat_interval_ms + 1_000}), or one lost heartbeat ends the lease",
            )
        if self.offline_after_ms < 2 * self.heartbeat_interval_ms:
            env.problem(
                "WORKLOAD_OFFLINE_AFTER_MS",
                f"{self.offline_after_ms} must be at least two heartbeats ({2 * self.heartbeat_interval_ms})",
            )
        if self.claim_waiters > self.web_threads // 2:
            env.problem(
                "WORKLOAD_CLAIM_WAITERS",
                f"{self.claim_waiters} is more than half of WORKLOAD_WEB_THREADS ({self.web_threads}): "
                "waiting claims would leave no thread for heartbeats",
            )
        if self.leader_timeout_ms <= 2 * self.coordinator_pass_ms:
            env.problem(
                "WORKLOAD_LEADER_TIMEOUT_MS",
                f"{self.leader_timeout_ms} must exceed two coordinator passes "
                f"({2 * self.coordinator_pass_ms}), or a healthy leader is ended",
            )
        for kind in self.executor_kinds:
            if not re.fullmatch(EXECUTOR_PATTERN, kind):
                env.problem(
                    "WORKLOAD_EXECUTOR_KINDS",
                    f"{kind!r} is not a kind: 1 to 64 of a-z, 0-9, _ and -, starting with a letter",
                )
        if self.page_size > self.page_size_max:
            env.problem("WORKLOAD_PAGE_SIZE", f"{self.page_size} is above WORKLOAD_PAGE_SIZE_MAX")
        if self.body_limit_bytes > self.definition_limit_bytes:
            env.problem("WORKLOAD_BODY_LIMIT_BYTES", "is above WORKLOAD_DEFINITION_LIMIT_BYTES")


def is_loopback(bind: str) -> bool:
    """Whether `host:port` listens on this machine alone."""
    host = bind.rpartition(":")[0].strip("[]")
    return host in {"localhost", "::1"} or host.startswith("127.")


def environment() -> Environment:
    """The process's own environment."""
    return Environment(os.environ)
