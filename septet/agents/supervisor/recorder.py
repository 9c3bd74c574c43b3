"""The recorder: a separate process that copies a program's output from pipes into files.

Without a recorder, the program could truncate the files or fill the files with holes. If the supervisor is killed,
the recorder writes the rest of the output, and holds the run's locks until the end. The supervisor replaces a
killed recorder.
"""

import fcntl
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from septet.agents.processes.process_tree import close_others, name_process, read_file

NAME = b"septet-recorder"
NEVER = float("inf")
CHUNK_BYTES = 1 << 16
QUIET_SECONDS, LAST_SECONDS = 0.5, 5.0
"""After the supervisor's end, in seconds: the silence after which copying ends, and the longest wait in all."""
FULL_DISK_SECONDS = 0.1
MOST_RECORDERS = 100
WRITABLE = 0o222
"""The pipe's mode: any user may write, because the guest of a root worker is another user, and scripts reopen
`/dev/stdout`."""
ADD_SEALS, ALL_SEALS, CAN_BE_SEALED = 1033, 15, 2
"""F_ADD_SEALS; the seals against more seals, a change of length and of content; MFD_ALLOW_SEALING."""


class OutputRecorder:
    """Starts and replaces the recorder of one run's stdout and stderr."""

    def __init__(self, outputs: Sequence[int], most_bytes: int, locks: Sequence[int]) -> None:
        """Make a pipe for each of the files `outputs`, which are for stdout and stderr.

        After `most_bytes` the recorder reads nothing, and a program that prints has to wait; 0 means no limit.
        """
        self.outputs, self.most_bytes, self.locks = tuple(outputs), most_bytes, tuple(locks)
        self.pid = self.started_count = 0
        self.life, self.own_life = os.pipe()
        """The pipe that closes when the supervisor ends; only the supervisor has the second end."""
        pairs = [open_pipe() for _ in outputs]
        self.readers = tuple(reader for reader, _ in pairs)
        self.writers = tuple(writer for _, writer in pairs)
        """The ends of the pipes into which the program writes."""

    def start(self) -> None:
        """Fork the recorder."""
        self.started_count += 1
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become_recorder(supervisor)
            finally:
                os._exit(1)

    def replace(self) -> bool:
        """Fork a new recorder after the old recorder was killed; return whether the fork succeeded."""
        self.pid = 0
        try:
            if self.started_count < MOST_RECORDERS:
                self.start()
        except OSError:
            return False
        return self.pid > 0

    def _become_recorder(self, supervisor: int) -> None:
        """Turn this new fork into the recorder; end the process when all output is written."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        name_process(NAME)
        os.close(0)
        os.open(os.devnull, os.O_RDWR)
        close_others((*self.readers, *self.outputs, *self.locks, self.life))
        Recording(supervisor, self.life, self.most_bytes).run(dict(zip(self.readers, self.outputs, strict=True)))
        os._exit(0)


class Recording:
    """Copies a program's output from pipes to files, in the process of the recorder."""

    def __init__(self, supervisor: int, life: int, most_bytes: int) -> None:
        """Take the supervisor's pid, the pipe that closes when the supervisor ends, and the limit of bytes."""
        self.supervisor = supervisor
        self.life = life
        self.most_bytes = most_bytes
        self.written_bytes = 0
        self.poller = select.poll()

    def run(self, ways: dict[int, int]) -> None:
        """Copy from pipes to files until the pipes end, or are silent after the supervisor's end.

        `ways` has the descriptor of each file, by the descriptor of its pipe.
        """
        for descriptor in (*ways, self.life):
            self.poller.register(descriptor, select.POLLIN)
        self.written_bytes = sum(os.fstat(output).st_size for output in ways.values())
        bound = NEVER
        while ways and time.monotonic() < bound:
            events = self.poller.poll(None if bound == NEVER else QUIET_SECONDS * 1000)
            if not events:
                return
            for descriptor, _ in events:
                if descriptor == self.life:
                    self.poller.unregister(self.life)
                    bound = time.monotonic() + LAST_SECONDS
                elif not self._pass_on(descriptor, ways[descriptor]):
                    self.poller.unregister(descriptor)
                    del ways[descriptor]
            if self.is_full:
                for descriptor in ways:
                    self.poller.modify(descriptor, 0)  # its end is still reported

    @property
    def is_full(self) -> bool:
        """Whether the output has exceeded its limit."""
        return 0 < self.most_bytes < self.written_bytes

    def _pass_on(self, descriptor: int, output: int) -> bool:
        """Copy the bytes in a pipe to the pipe's file; return whether more bytes may come."""
        data = b"" if self.is_full else os.read(descriptor, CHUNK_BYTES)
        self.written_bytes += len(data)
        self._write(output, data)
        return bool(data)

    def _write(self, output: int, data: bytes) -> None:
        """Write to a file; on a full disk, try again while the supervisor lives."""
        while data:
            try:
                data = data[os.write(output, data) :]
            except OSError:
                if os.getppid() != self.supervisor:
                    return
                time.sleep(FULL_DISK_SECONDS)


def open_pipe() -> tuple[int, int]:
    """Return the reading and the writing end of a new pipe for output."""
    reader, writer = os.pipe()
    os.fchmod(writer, WRITABLE)
    return reader, writer


def open_prompt(path: str) -> int:
    """Return a descriptor for reading a prompt; on Linux it holds a copy that the program cannot change."""
    source = os.open(path, os.O_RDONLY)
    if not hasattr(os, "memfd_create"):
        return source
    try:
        memory = os.memfd_create("prompt", os.MFD_CLOEXEC | CAN_BE_SEALED)
        while os.sendfile(memory, source, None, 1 << 30):
            continue
    finally:
        os.close(source)
    os.lseek(memory, 0, os.SEEK_SET)
    fcntl.fcntl(memory, ADD_SEALS, ALL_SEALS)
    return memory


def is_recorder(pid: int) -> bool:
    """Return whether a process has the recorder's name."""
    return read_file(f"/proc/{pid}/comm").strip() == NAME


def write_record(name: str, record: bytes, outputs: list[int]) -> None:
    """Sync the outputs to disk, write `record` to file `name`, and delete `control.sock`; ignore disk errors."""
    with suppress(OSError):
        for output in outputs:
            os.fsync(output)
        if os.path.exists("run.json"):  # a check or a set-up has no such file
            _force("run.json")
        file = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(file, record)
        finally:
            os.close(file)
        _force(f"{name}.new")
        os.rename(f"{name}.new", name)
        _force(".")
        os.unlink("control.sock")


def _force(path: str) -> None:
    """Wait until a file's content, or a folder's names, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
