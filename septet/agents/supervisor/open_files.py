"""What processes hold of the machine's memory by what they have open: sockets, pipes and files without a name."""

import ctypes
import os
import stat
from collections.abc import Container, Sequence

from septet.agents.supervisor.own_user import LIBC
from septet.agents.supervisor.process_tree import read_file

IN_MEMORY = (0x01021994, 0x958458F6)
"""How the kernel names tmpfs and hugetlbfs: what lies there takes memory, and no disk."""
STATFS_WORDS = 32
BLOCK_BYTES = 512
BUFFER = "/proc/sys/net/core/wmem_default"
USUAL_BUFFER_BYTES = 212992
BUFFERS_HELD = 2
"""A last message may be as large as all that went before it."""
FEWEST_CONNECTIONS = 256
"""Any program may have so many."""

FileId = tuple[int, int]
"""A file's device and number."""


class OpenFiles:
    """What some processes have open; what they share counts once."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Look at each of them; one that has gone has nothing open."""
        self.connections: set[FileId] = set()
        """Sockets and pipes."""
        self.nameless_files: dict[FileId, int] = {}
        """Files in memory that have no name any more, or never had one: the bytes that they take."""
        for pid in pids:
            for path in names_in(f"/proc/{pid}/fd"):
                status = status_of(path, follow=True)
                if status is not None:
                    self._note(path, status)

    def _note(self, path: str, status: os.stat_result) -> None:
        file, mode = (status.st_dev, status.st_ino), status.st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
            self.connections.add(file)
        elif stat.S_ISREG(mode) and status.st_nlink == 0 and file not in self.nameless_files and is_memory(path):
            self.nameless_files[file] = status.st_blocks * BLOCK_BYTES


def most_connections(memory_bytes: int) -> int:
    """Return how many sockets and pipes may be open: their buffers then take as much memory as may be used."""
    told = read_file(BUFFER).strip()
    buffer_bytes = int(told) if told.isdigit() else USUAL_BUFFER_BYTES
    return max(FEWEST_CONNECTIONS, memory_bytes // (BUFFERS_HELD * max(buffer_bytes, 1)))


def sockets_beside(pids: Sequence[int]) -> int:
    """Return how many sockets are in the network of these processes, also those that wait in messages.

    It is 0 where they have none of their own: then it is not told whose they are.
    """
    own = status_of("/proc/self/ns/net", follow=True)
    for pid in reversed(pids):
        network = status_of(f"/proc/{pid}/ns/net", follow=True)
        if own is not None and network is not None and network.st_ino != own.st_ino:
            words = read_file(f"/proc/{pid}/net/sockstat").split(None, 3)
            return int(words[2]) if words[:2] == [b"sockets:", b"used"] else 0
    return 0


def mapped_bytes(pid: int, files: Container[FileId], proc: str = "/proc") -> int:
    """Return a process's share of what is mapped of these files."""
    total, is_one = 0, False
    for line in read_file(f"{proc}/{pid}/smaps").splitlines():
        words = line.split(None, 5)
        if not words[0].endswith(b":"):
            major, _, minor = words[3].partition(b":")
            is_one = (os.makedev(int(major, 16), int(minor, 16)), int(words[4])) in files
        elif is_one and words[0] == b"Pss:":
            total += int(words[1]) << 10
    return total


def is_memory(path: str) -> bool:
    """Say whether a file lies in a file system that has no disk."""
    told = (ctypes.c_long * STATFS_WORDS)()
    return LIBC.statfs(os.fsencode(path), told) == 0 and told[0] in IN_MEMORY


def names_in(folder: str) -> list[str]:
    """Return the paths in a folder; none where it is gone or lies too deep for a path."""
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def status_of(path: str, *, follow: bool = False) -> os.stat_result | None:
    """Return what the disk says of a file; `None` for one that is gone."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
