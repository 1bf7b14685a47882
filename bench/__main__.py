"""``python -m bench``: every benchmark in turn; arguments after the name go to that one alone."""

from __future__ import annotations

import subprocess
import sys

NAMES = ("kernel", "load")


def main(arguments: list[str]) -> int:
    """Run the named benchmark, or all of them; the first that fails ends it."""
    names, rest = (
        ((arguments[0],), arguments[1:]) if arguments[:1] and arguments[0] in NAMES else (NAMES, arguments)
    )
    for name in names:
        print(f"== {name}", flush=True)
        code = subprocess.call([sys.executable, "-m", f"bench.{name}", *rest])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
