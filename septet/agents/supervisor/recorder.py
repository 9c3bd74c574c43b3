"""What a program prints goes through pipes: a recorder, a process beside its supervisor, writes it to files.

So the program has no file of the engine's open, which it could open again, cut short or fill with holes. The
recorder outlives a supervisor that was killed until all is on disk that the program had printed, for the program
dies with its supervisor; it holds the run's locks meanwhile. A recorder that was killed is replaced.
"""

import fcntl
import os
import select
import signal
import time
from collections.abc import Sequence

from septet.agents.processes.process_tree import close_others, name_process, read_file

NAME = b"septet-recorder"
NEVER = float("inf")
CHUNK_BYTES = 1 << 16
QUIET_SECONDS, LAST_SECONDS = 0.5, 5.0
"""After the supervisor's end: what is silent for so long prints no more; and nobody is waited for longer."""
FULL_DISK_SECONDS = 0.1
MOST_RECORDERS = 100
WRITABLE = 0o222
"""By any user: a guest of root's has one of its own, and scripts open `/dev/stdout` anew."""
ADD_SEALS, ALL_SEALS, CAN_BE_SEALED = 1033, 15, 2
"""F_ADD_SEALS; against more seals, another length and other content; MFD_ALLOW_SEALING."""


class OutputRecorder:
    """The recorder of one run's stdout and stderr."""

    def __init__(self, outputs: Sequence[int], most_bytes: int, locks: Sequence[int]) -> None:
        """Write to these files, and no more than so many bytes and a moment's; 0 is no limit.

        Args:
            outputs: The descriptors of the files of stdout and stderr.
            most_bytes: After that nothing is read, and what prints has to wait.
            locks: The descriptors of the run's locks.

        Raises:
            OSError: The machine refused.
        """
        self.outputs, self.most_bytes, self.locks = tuple(outputs), most_bytes, tuple(locks)
        self.pid = self.started_count = 0
        self.life, self.own_life = os.pipe()
        """The second end is the supervisor's alone."""
        pairs = [open_pipe() for _ in outputs]
        self.readers = tuple(reader for reader, _ in pairs)
        self.writers = tuple(writer for _, writer in pairs)
        """What the program gets."""

    def start(self) -> None:
        """Fork the recorder.

        Raises:
            OSError: The machine refused.
        """
        self.started_count += 1
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become_recorder(supervisor)
            finally:
                os._exit(1)

    def replace(self) -> bool:
        """Fork another recorder for one that was killed; return whether there is one."""
        self.pid = 0
        try:
            if self.started_count < MOST_RECORDERS:
                self.start()
        except OSError:
            return False
        return self.pid > 0

    def _become_recorder(self, supervisor: int) -> None:
        """Record in this process, just forked, and end it."""
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
    """What a recorder does."""

    def __init__(self, supervisor: int, life: int, most_bytes: int) -> None:
        """Take the supervisor's process, the pipe whose end is its end, and how much is read."""
        self.supervisor = supervisor
        self.life = life
        self.most_bytes = most_bytes
        self.written_bytes = 0
        self.poller = select.poll()

    def run(self, ways: dict[int, int]) -> None:
        """Write what comes from pipes to files until nobody has the pipes open, or none that still prints.

        Args:
            ways: The files' descriptors by the pipes'.
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
        """Whether more was printed than may be."""
        return 0 < self.most_bytes < self.written_bytes

    def _pass_on(self, descriptor: int, output: int) -> bool:
        """Write what is in a pipe now; return whether more may come."""
        data = b"" if self.is_full else os.read(descriptor, CHUNK_BYTES)
        self.written_bytes += len(data)
        self._write(output, data)
        return bool(data)

    def _write(self, output: int, data: bytes) -> None:
        """Write to a file; on a full disk who prints has to wait, as long as there is a supervisor."""
        while data:
            try:
                data = data[os.write(output, data) :]
            except OSError:
                if os.getppid() != self.supervisor:
                    return
                time.sleep(FULL_DISK_SECONDS)


def open_pipe() -> tuple[int, int]:
    """Return the ends of a pipe for what is printed.

    Raises:
        OSError: The machine refused.
    """
    reader, writer = os.pipe()
    os.fchmod(writer, WRITABLE)
    return reader, writer


def open_prompt(path: str) -> int:
    """Return a descriptor from which a program reads a text; on Linux a program that reopens it cannot change it.

    Raises:
        OSError: It cannot be read, or the machine refused.
    """
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
    """Return whether a process calls itself a recorder."""
    return read_file(f"/proc/{pid}/comm").strip() == NAME
