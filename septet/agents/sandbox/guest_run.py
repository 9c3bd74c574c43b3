"""Run a repository's own program, for example a check, in the same sandbox and limits as agents.

The program's record is a folder below the folder of an agent run, with the program's output and end.
"""

import os
import shutil
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from septet.agents.guest.description import GuestFiles
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.processes.order import Limits, Order, send_order
from septet.agents.runs.folders import RUN_VARIABLE, Runs
from septet.agents.runs.logs import end_of_file
from septet.agents.sandbox.connections import await_sweep
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors, sweep_leftovers
from septet.errors import AgentCrashedError, HaltedError
from septet.system import processes
from septet.system.durable import close_after, create_file, lock, open_lock

_OUTPUT_BYTES: Final = 64 * 1024
"""The number of bytes that are read from the end of each output stream."""
_LOOK_SECONDS: Final = 0.05
"""The seconds between two checks whether the attempt was cancelled; the program's end needs no poll."""
_END_SECONDS: Final = 15.0
"""The longest wait for the end of a cancelled program, which has two seconds of grace."""


@dataclass(frozen=True, slots=True)
class GuestCommand:
    """A program to run, with its directory and time limit."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment."""
    directory: Path
    seconds: float
    seen_at: Path | None = None
    """The path at which the sandbox shows the directory; `None` for the same path."""


@dataclass(frozen=True, slots=True)
class GuestEnd:
    """The end and the output of a program."""

    record: ExitRecord
    output: str
    """The end of stdout and then of stderr, with keys masked."""

    @property
    def code(self) -> int:
        """The exit code; if a signal killed the program, the negative number of the signal."""
        return self.record.exit_code if self.record.exit_code is not None else -(self.record.signal or 0)


@dataclass(frozen=True, slots=True)
class GuestRunner:
    """Runs a workspace's programs, one after the other, for an attempt that holds the writer's lock."""

    runs: Runs
    supervisors: Supervisors
    sandbox: Sandbox
    folder: Path
    """The folder of the records, below the run of the agent whose work is checked."""
    objects: Path | None
    """The folder of the mirror's objects that the workspace borrows."""
    writer_lock: int
    """The attempt's descriptor of the lock, held until the program and all that it started are dead."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """The resource limits of one program, with names as in an order's limits."""

    def run(self, command: GuestCommand) -> GuestEnd:
        """Run a program to its end, with all processes that it starts; return the end and the output.

        Raises:
            HaltedError: The attempt was cancelled; the program was ended.
            FileNotFoundError: The program was not found.
            AgentCrashedError: The supervisor was killed, with all that it started; or the runner is missing.
            OSError: The disk or the machine refused.
        """
        folder, mark = self._new_folder(), uuid.uuid4().hex
        with close_after(open_lock(folder / "lock")) as run_lock:
            lock(run_lock)
            with self._start(command, folder, mark, run_lock) as attached:
                record = _follow(attached)
        if record is None:
            if self.runs.runner is not None:
                await_sweep(self.runs.runner.parent)
            sweep_leftovers(mark, folder)
            raise AgentCrashedError(f"The supervisor of {folder} was killed.", remedy="Septet tries again.")
        return GuestEnd(record, _end_of(folder / "stdout.jsonl") + _end_of(folder / "stderr.log"))

    def _start(self, command: GuestCommand, folder: Path, mark: str, run_lock: int) -> socket.socket:
        """Send the order to a supervisor; return the connection. If the connection is closed, the program ends."""
        seen_at = command.seen_at or command.directory
        files = GuestFiles(seen_at, self.objects, env=command.env, source=command.directory)
        confinement = self.sandbox.confinement(files)
        argv, env = self._locate(command), self.sandbox.environment(command.env)
        order = Order(
            folder=str(folder),
            directory=str(command.directory),
            argv=argv,
            env={**env, RUN_VARIABLE: mark},
            limits=Limits(command.seconds, command.seconds, orphan_seconds=0.0).with_resources(self.resources),
        ).inside(confinement)
        connection = self.supervisors.connect()
        try:
            send_order(connection, order, (self.writer_lock, run_lock))
        except OSError:
            connection.close()
            raise
        return connection

    def _locate(self, command: GuestCommand) -> tuple[str, ...]:
        """Return the arguments with the program's path; unchanged in a sandbox, where the guest searches PATH."""
        program = command.argv[0]
        if self.sandbox.confines or os.sep in program:
            return command.argv
        path = shutil.which(program, path=command.env.get("PATH", os.defpath))
        if path is None:
            raise FileNotFoundError(2, os.strerror(2), program)
        return (path, *command.argv[1:])

    def _new_folder(self) -> Path:
        """Make the folder of the next record, with an empty prompt file as the program's stdin."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        folder = next(path for number in count(1) if not (path := self.folder / str(number)).exists())
        folder.mkdir(mode=0o700)
        create_file(folder / "prompt.md", b"")
        return folder


def _follow(attached: socket.socket) -> ExitRecord | None:
    """Wait for the program's end and return its record; `None` if the supervisor was killed."""
    received, ended_by, halted = b"", float("inf"), None
    attached.settimeout(_LOOK_SECONDS)
    while b"\n" not in received and time.monotonic() < ended_by:
        try:
            processes.check_halt()
        except HaltedError as error:
            if halted is None:
                halted, ended_by = error, time.monotonic() + _END_SECONDS
                attached.sendall(b"end cancelled\n")
        try:
            chunk = attached.recv(4096)
        except TimeoutError:
            continue
        if not chunk:
            break
        received += chunk
    if halted is not None:
        raise halted
    line, newline, _ = received.partition(b"\n")
    return msgspec.json.decode(line.removeprefix(b"ended "), type=ExitRecord) if newline else None


def _end_of(path: Path) -> str:
    return end_of_file(path, _OUTPUT_BYTES) if path.exists() else ""
