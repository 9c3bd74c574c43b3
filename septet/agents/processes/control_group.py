"""A control group (version 2) for each guest, if the worker may make groups.

The kernel limits a group only if the group above contains no processes itself. The worker therefore has to be in a
group below the delegated group; systemd's `DelegateSubgroup=` puts a worker there. The groups of guests are next
to the worker's group.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from septet.agents.processes.process_tree import read_file

CONTROLLERS = (b"memory", b"pids")
PREFIX = "septet-guest-"
ROOM_ABOVE_LIMIT = 4
"""A group's limit is a fourth above the supervisor's own limit, which therefore takes effect first."""
DELEGATED = "user.delegate"
"""The attribute by which systemd, since 251, marks a delegated group."""


class GuestGroup:
    """The control group of one guest."""

    def __init__(self, folder: str) -> None:
        """Take the folder of an existing group, in the file system of control groups."""
        self.folder = folder

    def enter(self) -> None:
        """Move this process, with later children, into the group; ignore a failure."""
        with suppress(OSError):
            write_file(f"{self.folder}/cgroup.procs", b"0")

    def close(self) -> bool:
        """Remove the group after its processes have ended; return whether it reached its memory limit."""
        events = dict(line.split() for line in read_file(f"{self.folder}/memory.events").splitlines())
        with suppress(OSError):
            os.rmdir(self.folder)
        return b"0" not in (events.get(b"oom", b"0"), events.get(b"oom_kill", b"0"))


def make_group(memory_bytes: int, processes: int, parent: str) -> GuestGroup | None:
    """Return a new group below `parent` with these limits, 0 for no limit; `None` if no group can be made.

    Also remove the groups that killed supervisors left.
    """
    if not parent:
        return None
    for name in os.listdir(parent):
        if name.startswith(PREFIX) and not os.path.exists(f"/proc/{name.removeprefix(PREFIX)}"):
            with suppress(OSError):
                os.rmdir(f"{parent}/{name}")
    group = f"{parent}/{PREFIX}{os.getpid()}"
    bounds: dict[str, int] = {}
    if memory_bytes:
        most = memory_bytes + memory_bytes // ROOM_ABOVE_LIMIT
        bounds |= {"memory.max": most, "memory.swap.max": 0, "memory.oom.group": 1}
    if processes:
        bounds["pids.max"] = processes + processes // ROOM_ABOVE_LIMIT + 8
    try:
        write_file(f"{parent}/cgroup.subtree_control", b" ".join(b"+" + name for name in CONTROLLERS))
        os.makedirs(group, exist_ok=True)
        for name, most in bounds.items():
            if os.access(f"{group}/{name}", os.F_OK):  # a kernel without swap has no file for it
                write_file(f"{group}/{name}", b"%d" % most)
    except OSError:
        return None
    return GuestGroup(group)


def find_parent(root: str = "", is_given: Callable[[str], bool] | None = None) -> tuple[str, str]:
    """Return the path of the group in which to make guests' groups; or an empty path, and why there is none.

    `root` is the file system's root, with `/proc` and `/sys`. `is_given` returns whether a group is delegated; by
    default it is `is_delegated`.
    """
    mounts = (line.split(" ") for line in os.fsdecode(read_file(f"{root}/proc/self/mounts")).splitlines())
    mount = next((fields[1] for fields in mounts if fields[2:3] == ["cgroup2"]), "")
    groups = os.fsdecode(read_file(f"{root}/proc/self/cgroup")).splitlines()
    own = next((line[3:] for line in groups if line.startswith("0::")), "")
    if not mount or not own or "/.." in own:
        return "", "no control groups of version 2 are mounted"
    if own == "/":
        return "", "Septet is in the topmost group that it sees"
    parent = f"{root}{mount}{own.rpartition('/')[0]}"
    name = own.rpartition("/")[0] or "/"
    if not (is_given or is_delegated)(parent):
        return "", f"the group {name} around Septet's own was not delegated to its user"
    missing = set(CONTROLLERS) - set(read_file(f"{parent}/cgroup.controllers").split())
    if missing:
        return "", f"the group {name} has no control of {b' and '.join(sorted(missing)).decode()}"
    if read_file(f"{parent}/cgroup.procs").strip():
        return "", f"processes are in the group {name} itself"
    return parent, ""


def is_delegated(group: str) -> bool:
    """Return whether systemd has delegated a group to this process, and the process may write there.

    A writable group is not enough: slices of the user's own systemd are writable and belong to systemd.
    """
    names = ("cgroup.procs", "cgroup.subtree_control")
    if not all(os.access(f"{group}/{name}", os.W_OK) for name in names) or not os.access(group, os.W_OK):
        return False
    try:
        return os.getxattr(group, DELEGATED) == b"1"
    except OSError:
        return False


def write_file(path: str, content: bytes) -> None:
    """Write to a file of the kernel, such as a control group's file."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
