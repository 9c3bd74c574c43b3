"""Start processes without a shell. Except for the agents' supervisors, only this module starts processes."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from septet.errors import HaltedError

_CHUNK_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a process that has ended."""

    argv: tuple[str, ...]
    exit_code: int
    """The exit code as `subprocess` returns it: negative for a signal."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    cut: bool = False
    """Whether the process was killed because its output reached the limit."""


class Halt:
    """Stops work from another thread: kills the processes of the work, and refuses to start more."""

    def __init__(self) -> None:
        """Begin without processes, and not halted."""
        self._guard = threading.Lock()
        self._running: set[int] = set()
        self._halted = False

    def now(self) -> None:
        """Kill the running processes of the work, and refuse further starts."""
        with self._guard:
            self._halted = True
            for pid in self._running:
                kill_group(pid)

    def check(self) -> None:
        """Raise an error if the work was halted.

        Raises:
            HaltedError: The work was halted.
        """
        if self._halted:
            raise HaltedError

    @contextmanager
    def over(self) -> Iterator[None]:
        """During the block, let this `Halt` end the processes that this thread runs."""
        token = _HALT.set(self)
        try:
            yield
        finally:
            _HALT.reset(token)

    @contextmanager
    def reaching(self, pid: int) -> Iterator[None]:
        """Kill process `pid` if the work is halted during the block; the block then raises `HaltedError`."""
        with self._guard:
            self._running.add(pid)
            if self._halted:
                kill_group(pid)
        try:
            yield
        finally:
            with self._guard:
                self._running.discard(pid)
        self.check()


_HALT: ContextVar[Halt | None] = ContextVar("halt", default=None)


def current_halt() -> Halt | None:
    """Return the `Halt` that can stop this thread's work; `None` if there is none."""
    return _HALT.get()


def check_halt() -> None:
    """Raise an error if the work of this thread was halted.

    Raises:
        HaltedError: The work was halted.
    """
    halt = current_halt()
    if halt is not None:
        halt.check()


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """A program to run, with its arguments and its environment."""

    argv: Sequence[str]
    """The program and its arguments, which no shell reads."""
    env: Mapping[str, str]
    """The whole environment; nothing is inherited."""
    cwd: Path | None = None
    """The folder in which the program runs; `None` for this process's folder."""
    pass_fds: Sequence[int] = ()
    """The descriptors that the program inherits."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout_seconds: float = 120.0,
) -> Completed:
    """Run a program to its end and return its result; see `run_program`."""
    return run_program(ProcessStart(argv, env, cwd), stdin=stdin, timeout_seconds=timeout_seconds)


def run_program(
    program: ProcessStart, *, stdin: bytes = b"", timeout_seconds: float = 120.0, limit_bytes: int | None = None
) -> Completed:
    """Run a program in a new session to its end, and return its result.

    Args:
        timeout_seconds: The time after which the program's process group is killed and the result has `timed_out`.
        limit_bytes: The size of stdout at which the program's process group is killed and the result has `cut`.

    Raises:
        OSError: The program could not be started.
        HaltedError: The work of this thread was halted.
    """
    check_halt()
    halt = current_halt()
    with _source(stdin, as_file=limit_bytes is not None) as source:
        process = subprocess.Popen(
            list(program.argv),
            env=dict(program.env),
            cwd=program.cwd,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=program.pass_fds,
        )
    timed_out = cut = False
    with halt.reaching(process.pid) if halt is not None else nullcontext():
        try:
            if limit_bytes is None:
                stdout, stderr = process.communicate(stdin or None, timeout=timeout_seconds)
            else:
                stdout, stderr, cut = _head(process, limit_bytes, timeout_seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_group(process.pid)
            stdout, stderr = _rest(process)
        except BaseException:
            kill_group(process.pid)
            process.wait()
            raise
    return Completed(tuple(program.argv), process.returncode, stdout, stderr, timed_out, cut)


@contextmanager
def _source(stdin: bytes, *, as_file: bool) -> Iterator[int | IO[bytes]]:
    """Yield what `Popen` takes as stdin: a pipe, nothing, or, if `as_file`, a temporary file with the content."""
    if not (stdin and as_file):
        yield subprocess.PIPE if stdin else subprocess.DEVNULL
        return
    with TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        yield file


def _rest(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the output of a killed process, even if other processes keep its pipes open."""
    try:
        return process.communicate(timeout=5.0)
    except subprocess.TimeoutExpired as error:
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()
        process.poll()
        return error.stdout or b"", error.stderr or b""


def _head(process: subprocess.Popen[bytes], limit_bytes: int, timeout_seconds: float) -> tuple[bytes, bytes, bool]:
    """Return the first `limit_bytes` of stdout, all of stderr, and whether the process was killed at the limit."""
    deadline = time.monotonic() + timeout_seconds
    buffers = {pipe: bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
    stdout, stderr = buffers.values()
    with selectors.DefaultSelector() as reading:
        for pipe, content in buffers.items():
            reading.register(pipe, selectors.EVENT_READ, content)
        while reading.get_map() and len(stdout) < limit_bytes:
            if (rest_seconds := deadline - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired(process.args, timeout_seconds)
            for key, _ in reading.select(rest_seconds):
                chunk = os.read(key.fd, _CHUNK_BYTES)
                key.data.extend(chunk)
                if not chunk:
                    reading.unregister(key.fileobj)
    if cut := len(stdout) >= limit_bytes:
        kill_group(process.pid)
    process.wait(max(0.0, deadline - time.monotonic()) if not cut else None)
    for pipe in buffers:
        pipe.close()
    return bytes(stdout[:limit_bytes]), bytes(stderr), cut


def start_detached(
    argv: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in a new session and return its process; its output is appended to the file `log`.

    A signal to this process's group does not reach the new process. The caller has to end it. Only this user can
    read the log and the new process's files.

    Raises:
        OSError: The program could not be started, or the log could not be opened.
    """
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out:
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
        )


def run_on_terminal(argv: Sequence[str], *, env: Mapping[str, str], stdin: bytes | None = None) -> int:
    """Run a program such as an editor or a pager on this process's terminal, and return its exit code.

    Args:
        env: The whole environment; nothing is inherited.
        stdin: The input; `None` for the terminal. A program that stops reading is no error.

    Raises:
        OSError: The program could not be started.
    """
    process = subprocess.Popen(list(argv), env=dict(env), stdin=None if stdin is None else subprocess.PIPE)
    with suppress(BrokenPipeError):
        process.communicate(stdin)
    return process.wait()


def kill_group(pid: int) -> None:
    """Kill the process group that process `pid` leads; a missing group is no error."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
