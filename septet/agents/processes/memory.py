"""Read the memory of this machine or container."""

import re
from collections.abc import Iterator
from contextlib import suppress

TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)
GROUPS = (("sys/fs/cgroup", "", "memory.max"), ("sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes"))
"""The folder, the controller in `/proc/self/cgroup`, and the limit's file, for control groups of versions 2 and
1."""


def most_memory_bytes(root: str = "/") -> int:
    """Return a guest's default limit: three quarters of `memory_bytes`; 0 (no limit) if the memory is unknown."""
    try:
        return memory_bytes(root) * 3 // 4
    except OSError:
        return 0


def memory_bytes(root: str = "/") -> int:
    """Return the machine's memory, or the tightest limit of the control groups that this process is in.

    `root` is the file system's root, with `/proc` and `/sys`.

    Raises:
        OSError: `/proc/meminfo` is missing, as on systems other than Linux.
    """
    match = TOTAL.search(read_text(f"{root}/proc/meminfo"))
    if match is None:
        raise OSError(0, "it does not tell the memory", f"{root}/proc/meminfo")
    return min([int(match[1]) * 1024, *limits_of_groups(root)])


def limits_of_groups(root: str) -> Iterator[int]:
    """Yield the limits of the process's own groups and of the groups around them, without `max`."""
    try:
        lines = read_text(f"{root}/proc/self/cgroup").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for mount, controller, name in GROUPS:
            if controller in controllers.split(","):
                yield from limits_above(f"{root}/{mount}", path.strip("/"), name)


def limits_above(mount: str, group: str, name: str) -> Iterator[int]:
    """Yield the numbers in the files of this name, in a group and the groups around it."""
    while True:
        with suppress(OSError, ValueError):
            yield int(read_text(f"{mount}/{group}/{name}"))
        if not group:
            return
        group = group.rpartition("/")[0]


def read_text(path: str) -> str:
    """Return the content of a kernel's file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
