"""Limits of resources that the kernel cannot enforce for a supervisor: processes, memory and bytes on disk.

The supervisor checks every two seconds. It reads `/proc` for its descendants, and how much of the disk is used. If
the disk's use has grown by the guest's limit, the supervisor counts the guest's files. It also counts them now and
then, because other programs may delete as much as the guest adds. The longer a count takes, the rarer counts are.
"""

import os
import resource
import stat
import time
from collections.abc import Container, Iterator, Mapping

from septet.agents.processes import memory
from septet.agents.processes.control_group import ROOM_ABOVE_LIMIT
from septet.agents.processes.order import Order
from septet.agents.processes.process_tree import LINUX, living_families, read_file

LOOK_SECONDS = 2.0
NO_FILES: Mapping[memory.FileId, int] = {}
TELLS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
"""Whether the kernel lists a process's children in `/proc`; a kernel may be built without these lists."""
NO_DUMP = 1
"""The limit of core dumps, in bytes: with 1 the kernel writes no file, and starts no program of `core_pattern`."""
MOST_OPEN_FILES = 8192
"""The most open files of one process; equally many files may be in messages that nobody has received."""
SHORTEST_COUNT_SECONDS, COUNT_SHARE = 4.0, 2000
"""The shortest pause between two counts of files: in seconds, and as a multiple of a count's duration."""
CLOCK_SECONDS = 1.0
"""The seconds by which the clocks of files and of the supervisor may differ."""


def limit_own_process(order: Order, *, has_own_user: bool) -> None:
    """Set the kernel's limits for this process, which then becomes the agent; descendants inherit the limits."""
    limits = order.limits
    lower_limit(resource.RLIMIT_CORE, NO_DUMP)
    if limits.memory_bytes != 0:
        told = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = (
            MOST_OPEN_FILES if each == resource.RLIM_INFINITY else min(MOST_OPEN_FILES, each) for each in told
        )
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if limits.disk_bytes:
        lower_limit(resource.RLIMIT_FSIZE, limits.disk_bytes)
    if limits.processes and has_own_user:
        lower_limit(resource.RLIMIT_NPROC, limits.processes + limits.processes // ROOM_ABOVE_LIMIT + 8)


def lower_limit(kind: int, most: int) -> None:
    """Lower a limit of this process to `most`; a lower hard limit stays."""
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


class ResourceWatch:
    """Checks, at each call of `look`, the resources that an agent and its processes use."""

    def __init__(self, order: Order, began_at: float) -> None:
        """Take the order, in which 0 means no limit, and the time of the guest's start, in seconds since 1970."""
        self.limits = order.limits
        named = order.limits.memory_bytes
        self.memory_bytes = memory.most_memory_bytes() if named is None else named
        self.began_at = began_at - CLOCK_SECONDS
        around = order.confinement.arguments if order.confinement is not None else ()
        bound = [around[index + 1] for index, part in enumerate(around[:-1]) if part in {"--bind", "--bind-try"}]
        self.folders = list(dict.fromkeys(bound or [order.directory]))
        self.disks = {folder: usage_of_disk(folder) for folder in self.folders}
        self.grown_bytes = self.grown_entries = 0
        self.count_at = time.monotonic() + SHORTEST_COUNT_SECONDS
        self.processes: list[int] = []
        self.shared_before = memory.shared_memory_bytes()
        self.files_in_messages = 0

    def look(self, supervisor: int, own: Container[int] = ()) -> tuple[str, str]:
        """Return the name of a reached limit, and the limit in words; two empty texts if no limit is reached.

        `own` has the supervisor's own children, which do not count for the guest.
        """
        if not LINUX:
            return "", ""
        self.processes, tasks = tree_below(supervisor, own)
        if 0 < self.limits.processes < tasks:
            return "process_limit", f"processes limit of {self.limits.processes} reached"
        used_memory = self.look_at_memory(memory.OpenFiles(self.processes)) if self.memory_bytes else None
        return used_memory or self.look_at_disk() or ("", "")

    @property
    def memory_words(self) -> str:
        """The words that report that the memory limit is reached."""
        return f"memory limit of {self.memory_bytes >> 20} MiB reached"

    def look_at_memory(self, files: memory.OpenFiles) -> tuple[str, str] | None:
        """Return the reached limit of memory, sockets or pipes, as `look` does; `None` if no limit is reached."""
        is_over = use_more_memory(self.processes, self.memory_bytes, nameless=files.nameless_files)
        if self.may_hide_memory(files) or is_over:
            return "memory_limit", self.memory_words
        most = memory.most_connections(self.memory_bytes)
        if max(len(files.connections), memory.sockets_beside(self.processes)) > most:
            return "socket_limit", f"sockets and pipes limit of {most} reached"
        return None

    def may_hide_memory(self, files: memory.OpenFiles) -> bool:
        """Return whether shared memory has grown by more than the limit, and the guest is suspected.

        The kernel does not report the owner of shared memory. The guest is suspected if two checks in a row find
        files sent over sockets and not received, or if deleted files, closed but still mapped, exceed the limit.
        """
        waited, self.files_in_messages = self.files_in_messages, files.files_in_messages
        if memory.shared_memory_bytes() - self.shared_before <= self.memory_bytes:
            return False
        leaves_files = bool(waited and files.files_in_messages)
        return leaves_files or memory.bytes_only_mapped(self.processes, files.nameless_files) > self.memory_bytes

    def look_at_disk(self) -> tuple[str, str] | None:
        """Return the reached limit of files, as `look` does; `None` if no limit is reached or no count is due."""
        for folder in self.folders:
            used, before = usage_of_disk(folder), self.disks[folder]
            self.disks[folder] = used
            self.grown_bytes += max(0, used[0] - before[0])
            self.grown_entries += max(0, used[1] - before[1])
        most_bytes, most_entries = self.limits.disk_bytes, self.limits.tree_entries
        has_grown = 0 < most_bytes <= self.grown_bytes or 0 < most_entries <= self.grown_entries
        began_at = time.monotonic()
        is_limited = most_bytes or most_entries or self.limits.tree_bytes
        if not is_limited or not (has_grown or began_at >= self.count_at):
            return None
        size, entries, length = self.count_written()
        now = time.monotonic()
        self.count_at = now + max(SHORTEST_COUNT_SECONDS, COUNT_SHARE * (now - began_at))
        if 0 < most_bytes <= size:
            return "disk_limit", f"disk limit of {most_bytes >> 20} MiB reached"
        if 0 < most_entries <= entries:
            return "tree_limit", f"tree limit of {most_entries} entries reached"
        if 0 < self.limits.tree_bytes <= length:
            return "tree_size_limit", f"tree limit of {self.limits.tree_bytes >> 20} MiB reached"
        self.grown_bytes, self.grown_entries = size, entries
        return None

    def count_written(self) -> tuple[int, int, int]:
        """Return three sums for the files written since the start: bytes on disk, number and length.

        The count stops at a limit. A file with holes is longer than its bytes on disk.
        """
        limits, size, entries, length = self.limits, 0, 0, 0
        seen: set[tuple[int, int]] = set()
        for status in self.written_files():
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
            size += status.st_blocks * memory.BLOCK_BYTES
            entries += 1
            length += status.st_size if stat.S_ISREG(status.st_mode) else 0
            is_over = 0 < limits.disk_bytes <= size or 0 < limits.tree_entries <= entries
            if is_over or 0 < limits.tree_bytes <= length:
                break
        return size, entries, length

    def written_files(self) -> Iterator[os.stat_result]:
        """Yield the `stat` of open nameless files and, below `folders`, of entries that changed after the start.

        Files are not opened, because the guest may have left a named pipe, which would block this process.
        """
        for pid in self.processes:
            for path in memory.names_in(f"/proc/{pid}/fd"):
                status = memory.status_of(path, follow=True)
                if status is not None and status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                    yield status
        pending = list(self.folders)
        while pending:
            for path in memory.names_in(pending.pop()):
                status = memory.status_of(path)
                if status is None:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)
                if status.st_ctime >= self.began_at:
                    yield status


def usage_of_disk(folder: str) -> tuple[int, int]:
    """Return how many bytes and entries a folder's file system has in use; zeros if the folder is missing."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0, 0
    return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_files - status.f_ffree


def tree_below(
    ancestor: int, spared: Container[int] = (), *, tells_children: bool = TELLS_CHILDREN
) -> tuple[list[int], int]:
    """Return the descendants of a process, except `spared`, and the number of their threads.

    If `tells_children` is false, the kernel lists no children: this then reads the parents of all processes.
    """
    families = {} if tells_children else living_families()
    pids: list[int] = []
    tasks = 0
    pending = [ancestor]
    while pending:
        pid = pending.pop()
        threads = memory.names_in(f"/proc/{pid}/task")
        told = (int(child) for thread in threads for child in read_file(f"{thread}/children").split())
        below = [child for child in (told if tells_children else families.get(pid, [])) if child not in spared]
        pids += below
        pending += below
        tasks += len(threads)
    return pids, tasks - 1


def use_more_memory(
    pids: list[int], limit_bytes: int, proc: str = "/proc", nameless: Mapping[memory.FileId, int] = NO_FILES
) -> bool:
    """Return whether processes use more memory than the limit; shared memory counts once, pages of files never.

    Swapped memory and nameless files in memory count too. The kernel needs long for the exact sum, so
    this reads the sum only if the processes could exceed the limit.
    """
    statuses = [(pid, read_file(f"{proc}/{pid}/status")) for pid in pids]
    own = sum(field_of(status, b"RssAnon:") + field_of(status, b"VmSwap:") for _, status in statuses)
    own += sum(nameless.values())
    sharing = [(pid, field_of(status, b"RssShmem:")) for pid, status in statuses]
    if own + sum(shared for _, shared in sharing) <= limit_bytes:
        return False
    shares = [(pid, share_of_memory(pid, shared, proc)) for pid, shared in sharing if shared]
    shared = sum(share - (memory.mapped_bytes(pid, nameless, proc) if nameless else 0) for pid, share in shares)
    return own + max(shared, 0) > limit_bytes


def share_of_memory(pid: int, shared: int, proc: str) -> int:
    """Return a process's share of its shared memory, in bytes; all of it if the kernel reports no share."""
    parts = read_file(f"{proc}/{pid}/smaps_rollup")
    return field_of(parts, b"Pss_Shmem:") if b"Pss_Shmem:" in parts else shared


def field_of(text: bytes, name: bytes) -> int:
    """Return a size in bytes, which a line of `/proc` states in KiB; 0 if the line is missing."""
    return memory.number_after(text, name) << 10
