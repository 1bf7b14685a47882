"""What can be said about the code without running its tests. Runs every check, then names those that failed.

.ci/check.py                  all of them
.ci/check.py types imports    only these
.ci/check.py --write-schema   write docs/openapi.yaml anew
"""

from __future__ import annotations

import difflib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SCHEMA = ROOT / "docs" / "openapi.yaml"
LINES_WARN, LINES_FAIL = 400, 600
SIZED = ("*.py", "*.sql", "*.html", "*.css", "run")


def run(*command: str | Path, environment: dict[str, str] | None = None) -> bool:
    """Run one program in the project's folder; whether it succeeded."""
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - our own tools
    return done.returncode == 0


def manage(*arguments: str, **environment: str) -> bool:
    """Run a management command that knows nothing of the caller's own settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("WORKLOAD_") and not name.endswith("DATABASE_URL")
    }
    with tempfile.TemporaryDirectory(prefix="workload-check-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # as root the database's user must pass through
        return run(
            sys.executable,
            "manage.py",
            *arguments,
            environment={**kept, "WORKLOAD_DATA_DIR": folder, "PYTHONWARNINGS": "error", **environment},
        )


def check_format() -> bool:
    return run(BIN / "ruff", "format", "--check", "--quiet", ".") or complain("run: .venv/bin/ruff format .")


def check_lint() -> bool:
    return run(BIN / "ruff", "check", "--quiet", ".")


def check_types() -> bool:
    return run(BIN / "mypy")


def check_imports() -> bool:
    return run(BIN / "lint-imports")


def check_migrations() -> bool:
    """The models and the migrations say the same."""
    return manage("makemigrations", "--check", "--dry-run")


def check_settings() -> bool:
    """Django's own checks and ours, as a production install would run them."""
    return manage(
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        DATABASE_URL="postgresql://workload@database.example/workload",
        WORKLOAD_SECRET_KEY=secrets.token_urlsafe(64),
        WORKLOAD_ALLOWED_HOSTS="workload.example",
        WORKLOAD_TRUSTED_ORIGINS="https://workload.example",
        WORKLOAD_HTTPS="1",
    )


def check_schema() -> bool:
    """The committed API description is the one that the code gives, and that came without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, "openapi.yaml")
        if not write_schema(fresh):
            return False
        wanted = fresh.read_text(encoding="utf-8").splitlines()
    committed = SCHEMA.read_text(encoding="utf-8").splitlines() if SCHEMA.exists() else []
    if committed == wanted:
        return True
    sys.stdout.write(
        "\n".join(list(difflib.unified_diff(committed, wanted, "committed", "code", n=1))[:60]) + "\n"
    )
    return complain("docs/openapi.yaml is not what the code gives; run: ./run schema")


def write_schema(path: Path) -> bool:
    return manage("spectacular", "--validate", "--fail-on-warn", "--file", str(path))


def check_sizes() -> bool:
    """A file over 400 lines is a question, over 600 a refusal."""
    listed = subprocess.run(  # noqa: S603 - fixed words
        [  # noqa: S607 - wherever git is
            "git",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            *SIZED,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    fine = True
    for name in filter(None, listed):
        path = ROOT / name
        if not path.is_file() or "/migrations/" in name or "/vendor/" in name:
            continue
        lines = path.read_bytes().count(b"\n")
        if lines > LINES_FAIL:
            fine = complain(f"{name} has {lines} lines; {LINES_FAIL} is the limit. Split it.")
        elif lines > LINES_WARN:
            sys.stdout.write(f"{name} has {lines} lines: is it one thing?\n")
    return fine


def complain(sentence: str) -> bool:
    sys.stdout.write(f"{sentence}\n")
    return False


CHECKS: dict[str, Callable[[], bool]] = {
    "format": check_format,
    "lint": check_lint,
    "sizes": check_sizes,
    "imports": check_imports,
    "types": check_types,
    "migrations": check_migrations,
    "settings": check_settings,
    "schema": check_schema,
}


def main(names: Iterable[str]) -> int:
    failed = []
    for name in names:
        sys.stdout.write(f"== {name}\n")
        sys.stdout.flush()
        began = time.monotonic()
        if not CHECKS[name]():
            failed.append(name)
        sys.stdout.write(
            f"   {name}: {'FAILED' if name in failed else 'ok'}, {time.monotonic() - began:.1f} s\n"
        )
    sys.stdout.write(f"Failed: {', '.join(failed)}\n" if failed else "All checks passed.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    if given == ["--write-schema"]:
        sys.exit(0 if write_schema(SCHEMA) else 1)
    if unknown := set(given) - set(CHECKS):
        sys.exit(f"No such check: {', '.join(sorted(unknown))}. There are: {', '.join(CHECKS)}.")
    sys.exit(main(given or CHECKS))
