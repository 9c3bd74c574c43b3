"""Measure the memory of the machine or container, and the memory of sockets, pipes and nameless files."""

import ctypes
import os
import re
import stat
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

from septet.agents.processes.own_user import LIBC
from septet.agents.processes.process_tree import read_file

TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)
GROUPS = (("sys/fs/cgroup", "", "memory.max"), ("sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes"))
"""For control groups of versions 2 and 1: mount, controller in `/proc/self/cgroup`, and the limit's file."""


def most_memory_bytes(root: str = "/") -> int:
    """Return a guest's default memory limit, three quarters of the memory; 0 (no limit) if unknown."""
    try:
        return memory_bytes(root) * 3 // 4
    except OSError:
        return 0


def memory_bytes(root: str = "/") -> int:
    """Return the machine's memory in bytes, or the lowest memory limit of this process if that is less.

    Raises:
        OSError: `/proc/meminfo` is missing, as on systems other than Linux.
    """
    with open(f"{root}/proc/meminfo", encoding="utf-8", errors="replace") as file:
        match = TOTAL.search(file.read())
    if match is None:
        raise OSError(0, "it does not tell the memory", f"{root}/proc/meminfo")
    return min([int(match[1]) * 1024, *limits_of_groups(root)])


def limits_of_groups(root: str) -> Iterator[int]:
    """Yield the memory limits of this process's control groups and of the groups above them."""
    for line in read_file(f"{root}/proc/self/cgroup").decode("utf-8", "replace").splitlines():
        _, controllers, path = line.split(":", 2)
        for mount, controller, name in GROUPS:
            if controller in controllers.split(","):
                yield from limits_above(f"{root}/{mount}", path.strip("/"), name)


def limits_above(mount: str, group: str, name: str) -> Iterator[int]:
    """Yield the limit in the file `name` of a control group, and of each group above it."""
    while True:
        with suppress(ValueError):
            yield int(read_file(f"{mount}/{group}/{name}"))
        if not group:
            return
        group = group.rpartition("/")[0]


IN_MEMORY = (0x01021994, 0x958458F6)
"""The kernel's numbers of tmpfs and hugetlbfs: their files take memory, and no disk."""
STATFS_WORDS = 32
BLOCK_BYTES = 512
USUAL_BUFFER_BYTES = 212992
BUFFERS_HELD = 2
"""The most bytes in a connection, as a multiple of its buffer: a nearly full buffer accepts one more message."""
FEWEST_CONNECTIONS = 256
"""The number of connections that any guest may have, whatever its memory limit."""

FileId = tuple[int, int]
"""A file's device and number."""


class OpenFiles:
    """The open sockets, pipes and nameless files of some processes; a shared file counts once."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Read the open files of these processes; skip processes that have ended."""
        self.connections: set[FileId] = set()
        """The open sockets and pipes."""
        self.nameless_files: dict[FileId, int] = {}
        """The size, in bytes, of each nameless file in memory."""
        self.files_in_messages = 0
        """The number of files in messages that nobody has received; perhaps no process has these files open."""
        for pid in pids:
            for path in names_in(f"/proc/{pid}/fd"):
                status = status_of(path, follow=True)
                if status is not None:
                    self._note(path, status)

    def _note(self, path: str, status: os.stat_result) -> None:
        file, mode = (status.st_dev, status.st_ino), status.st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
            if stat.S_ISSOCK(mode) and file not in self.connections:
                self.files_in_messages += number_after(read_file(path.replace("/fd/", "/fdinfo/")), b"scm_fds:")
            self.connections.add(file)
        elif stat.S_ISREG(mode) and status.st_nlink == 0 and file not in self.nameless_files and is_memory(path):
            self.nameless_files[file] = status.st_blocks * BLOCK_BYTES


def most_connections(memory_bytes: int) -> int:
    """Return how many sockets and pipes a guest may have, so that their buffers fit into the memory limit."""
    told = read_file("/proc/sys/net/core/wmem_default").strip()
    buffer_bytes = int(told) if told.isdigit() else USUAL_BUFFER_BYTES
    return max(FEWEST_CONNECTIONS, memory_bytes // (BUFFERS_HELD * max(buffer_bytes, 1)))


def sockets_beside(pids: Sequence[int]) -> int:
    """Return the number of sockets in the private network of these processes.

    Sockets in messages that nobody has received count too. For the machine's own network, the number is 0.
    """
    own = status_of("/proc/self/ns/net", follow=True)
    for pid in reversed(pids):
        network = status_of(f"/proc/{pid}/ns/net", follow=True)
        if own is not None and network is not None and network.st_ino != own.st_ino:
            words = read_file(f"/proc/{pid}/net/sockstat").split(None, 3)
            return int(words[2]) if words[:2] == [b"sockets:", b"used"] else 0
    return 0


def mapped_bytes(pid: int, files: Container[FileId], proc: str = "/proc") -> int:
    """Return how many bytes of `files` a process has mapped; of a shared page, only the process's share counts."""
    total, is_one = 0, False
    for line in read_file(f"{proc}/{pid}/smaps").splitlines():
        words = line.split(None, 5)
        if not words[0].endswith(b":"):
            is_one = file_id(words[3], words[4]) in files
        elif is_one and words[0] == b"Pss:":
            total += int(words[1]) << 10
    return total


def bytes_only_mapped(pids: Sequence[int], files: Container[FileId]) -> int:
    """Return how many bytes the processes have mapped of nameless files that are not open (not in `files`).

    The whole mapping counts, because the kernel does not report how much of a file is filled.
    """
    longest: dict[FileId, int] = {}
    for pid in pids:
        mapped: dict[FileId, int] = {}
        for line in read_file(f"/proc/{pid}/maps").splitlines():
            place, rights, _, device, number, *name = line.split(None, 5)
            if rights.endswith(b"s") and b"".join(name).endswith(b"(deleted)"):
                file = file_id(device, number)
                begin, _, end = place.partition(b"-")
                mapped[file] = mapped.get(file, 0) + int(end, 16) - int(begin, 16)
        longest |= {file: max(size, longest.get(file, 0)) for file, size in mapped.items() if file not in files}
    return sum(longest.values())


def file_id(device: bytes, number: bytes) -> FileId:
    """Return a file's id from the device and number that a line of `maps` names."""
    major, _, minor = device.partition(b":")
    return os.makedev(int(major, 16), int(minor, 16)), int(number)


def shared_memory_bytes() -> int:
    """Return how many bytes of shared memory the machine uses (`Shmem`)."""
    return number_after(read_file("/proc/meminfo"), b"Shmem:") << 10


def number_after(text: bytes, name: bytes) -> int:
    """Return the number that follows a name in a text of `/proc`; 0 if the text does not have the name."""
    words = text.partition(name)[2].split(None, 1)
    return int(words[0]) if words else 0


def is_memory(path: str) -> bool:
    """Return whether the file system of a file keeps its files in memory."""
    told = (ctypes.c_long * STATFS_WORDS)()
    return LIBC.statfs(os.fsencode(path), told) == 0 and told[0] in IN_MEMORY


def names_in(folder: str) -> list[str]:
    """Return the paths of a folder's entries; empty if the folder cannot be read."""
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def status_of(path: str, *, follow: bool = False) -> os.stat_result | None:
    """Return the status of a file; `None` if the file is gone."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
