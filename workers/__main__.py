"""`python -m workers`: a worker without Django."""

from __future__ import annotations

import argparse
import logging
import logging.config
import os
import sys
from collections.abc import Mapping

from observability import tracing
from observability.logs import logging_config
from workers.executors.python import ActionsInvalid
from workers.executors.registry import ExecutorFactory, build_executors
from workers.options import OptionsInvalid, WorkerOptions, add_arguments, from_arguments
from workers.process import ExitCode, StopRequests
from workers.runtime import Worker

logger = logging.getLogger("workers")


def run_worker(options: WorkerOptions, further: Mapping[str, ExecutorFactory] | None = None) -> ExitCode:
    """Run a worker with signal handlers; raises `OptionsInvalid` or `ActionsInvalid` before it starts.

    `further`: executors by kind that the caller provides besides those of this package and installed ones.
    Traced if the environment asks for it.
    """
    tracing.configure("workload-worker", instrument=["requests"])
    if options.drills:
        logger.warning("drills are on: mock tasks may hang or kill this worker; never in production")
    executors = build_executors(options, further)
    stop = StopRequests()
    restore = stop.listen()
    try:
        return Worker(options, executors, stop=stop).run()
    finally:
        restore()


def end_process(code: ExitCode) -> None:
    """Exit with `code`; abandoned executions cannot hold the process back, whatever threads they started."""
    if code is ExitCode.CLEAN:
        sys.exit(code)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Parse, build, run."""
    parser = argparse.ArgumentParser(prog="python -m workers", description="Takes tasks and executes them.")
    add_arguments(parser)
    arguments = parser.parse_args()
    style, level = os.environ.get("WORKLOAD_LOG_FORMAT", "text"), os.environ.get("WORKLOAD_LOG_LEVEL", "INFO")
    logging.config.dictConfig(logging_config(style, level.upper()))
    try:
        code = run_worker(from_arguments(vars(arguments)))
    except (OptionsInvalid, ActionsInvalid) as error:
        parser.error(str(error))
    end_process(code)


if __name__ == "__main__":
    main()
