"""Runs `septet` in a process forked from a process with its imports, which saves a second at each start."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TextIO

WARM: Final = (
    "clients.cli.main", "clients.cli.render.task_reply", "clients.operations.operations", "rich._emoji_codes",
    # The modules that read each command line.
    "clients.cli.parsing.command_line", "clients.cli.parsing.values", "clients.cli.terminal.reply",
    "clients.cli.decide.options", "clients.cli.options", "clients.cli.serve.options",
    "clients.cli.pipelines.options", "clients.cli.watch.options",
    # The modules that commands import at use, and would import again in each process.
    "clients.cli.render.tables", "clients.cli.render.board", "clients.cli.render.detail", "clients.cli.render.logs",
    "clients.cli.pipelines.rendering", "clients.disk.runs", "clients.error_reply", "clients.starting.tracked_issue",
    "clients.temporal.board",
    "clients.temporal.costs", "clients.temporal.decisions", "clients.temporal.intakes", "clients.pipelines.client",
    "septet.agents.clis.registry", "septet.contracts.pull_request_watch", "septet.contracts.steps", "septet.forges",
    "septet.pipelines", "septet.pipelines.records", "septet.trackers.choose",
    # The modules of `up` and `worker`, which take a second.
    "clients.cli.serve.up", "clients.cli.serve.worker", "clients.cli.watch.follow", "clients.cli.watch.view_commands", "clients.cli.decide.decide", "clients.cli.start.run", "clients.http.serving", "workers.recovery.strays", "workers.worker",
)  # fmt: skip
_COMM: Final = Path("/proc/self/comm")
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


class WarmProgram:
    """A serving command with the used methods of `subprocess.Popen`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.told: Final = (*argv, *env.values())
        """The command line and the values of the environment: the system shows those of the forked process instead."""
        out, of_out = _FORKS.Pipe(duplex=False)
        err, of_err = _FORKS.Pipe(duplex=False)
        hangup = signal.getsignal(signal.SIGHUP)
        arguments = (tuple(argv), dict(env), Path.cwd(), of_out, of_err, hangup)
        with of_out, of_err:
            self._process = _FORKS.Process(target=_serve, args=arguments)
            self._process.start()
        self.stdout: Final = _text_of(out)
        self.stderr: Final = _text_of(err)
        assert self._process.pid is not None
        self.pid: Final = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.told[0], timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _text_of(end: "Connection[Any, Any]") -> TextIO:
    with end:
        return os.fdopen(os.dup(end.fileno()), encoding="utf-8")


def _serve(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    out: "Connection[Any, Any]",
    err: "Connection[Any, Any]",
    hangup: Any,
) -> None:
    signal.signal(signal.SIGHUP, hangup)
    if _COMM.exists():
        _COMM.write_text(Path(argv[0]).name, encoding="ascii")
    with out, err:
        _run(argv, env, cwd, os.dup(out.fileno()), os.dup(err.fileno()))


def _become(argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: Path, err: Path) -> None:
    _run(argv, env, cwd, *(os.open(path, os.O_WRONLY | os.O_CREAT) for path in (out, err)))


def _run(argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: int, err: int) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for target, opened in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(opened, target)
        os.close(opened)
    sys.argv = list(argv)

    from clients.cli.main import main

    main()
