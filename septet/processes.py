"""The one place, beside the agents' supervisor, where processes are started: argv, never a shell."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Completed:
    """A process that has ended."""

    argv: tuple[str, ...]
    exit_code: int
    """As `subprocess` gives it: negative for a signal."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False


def run(  # noqa: PLR0913 -- each is a fact of the process, all by name
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout_seconds: float = 120.0,
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run `argv` to its end in a session of its own and return what it printed.

    Args:
        argv: Program and arguments; no shell reads them.
        env: The whole environment; nothing is inherited.
        cwd: Where it runs; this process's folder when absent.
        stdin: What it reads.
        timeout_seconds: After that its whole process group is killed and `timed_out` is set.
        pass_fds: Descriptors that stay open in it.

    Raises:
        OSError: The program could not be started.
    """
    process = subprocess.Popen(  # noqa: S603 -- argv comes from the engine
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(stdin or None, timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process.pid)
        stdout, stderr = process.communicate()
    except BaseException:
        kill_group(process.pid)
        process.wait()
        raise
    return Completed(tuple(argv), process.returncode, stdout, stderr, timed_out)


def start_detached(
    argv: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own and return it; what it prints goes to the end of `log`.

    A signal to this process's group does not reach it; it is the caller's to end.

    Raises:
        OSError: The program could not be started, or the log not be opened.
    """
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 -- argv comes from the engine
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads; one that is gone is no error."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
