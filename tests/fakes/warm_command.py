"""`septet` to its end in a process forked from one that has imported it: a start without the second of imports.

What runs is the program's own `main`, with an environment, a folder, output and an exit code of its own.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

WARM: Final = (
    "clients.cli.main", "clients.cli.task_reply", "clients.operations", "typer._adapters", "rich._emoji_codes",
    # What commands import when they are used, and would import again in each process.
    "clients.cli.render.ages", "clients.cli.render.board", "clients.cli.render.costs", "clients.cli.render.detail",
    "clients.cli.render.listing", "clients.cli.render.network", "clients.cli.render.pipeline",
    "clients.disk.network_requests", "clients.error_reply", "clients.tracked_issue", "clients.temporal.board",
    "clients.temporal.costs", "clients.temporal.decisions", "clients.temporal.intakes", "clients.temporal.pipelines",
    "septet.agents.clis.registry", "septet.contracts.pull_request", "septet.contracts.steps", "septet.forges",
    "septet.pipelines", "septet.pipelines.report", "septet.trackers.choose",
)  # fmt: skip
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(list(WARM))


def run_septet(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, output: Path, within_seconds: float
) -> tuple[int, str, str]:
    """Run a command line, and return its exit code, stdout and stderr, which are written below `output`."""
    out, err = output / "out", output / "err"
    process = _FORKS.Process(target=_become, args=(tuple(argv), dict(env), cwd, out, err))
    process.start()
    try:
        process.join(within_seconds)
        assert process.exitcode is not None, f"{argv} did not end in time"
        return process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
    finally:
        process.kill()
        process.join()
        process.close()


def _become(argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for target, source, flags in (
        (0, Path(os.devnull), os.O_RDONLY),
        (1, out, os.O_WRONLY | os.O_CREAT),
        (2, err, os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(source, flags)
        os.dup2(opened, target)
        os.close(opened)
    sys.argv = list(argv)

    from clients.cli.main import main

    main()
