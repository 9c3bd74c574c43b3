"""Read and control processes: parents, descendants and identities; most functions need Linux."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Container, Sequence
from contextlib import suppress

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PROCESS_CONTROL = ctypes.CDLL(None).prctl if LINUX else None


def lead_orphans() -> None:
    """Become the new parent of every descendant whose parent ends."""
    if PROCESS_CONTROL is not None:
        PROCESS_CONTROL(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends, even if SIGKILL ends the parent."""
    if PROCESS_CONTROL is not None:
        PROCESS_CONTROL(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def name_process(name: bytes) -> None:
    """Give this process a name of up to 15 bytes, as `ps` shows it."""
    if PROCESS_CONTROL is not None:
        PROCESS_CONTROL(PR_SET_NAME, name, 0, 0, 0)


def has_others(child: int) -> bool:
    """Return whether this process has a child other than `child`; true if the kernel does not list children."""
    told = read_file(f"/proc/self/task/{os.getpid()}/children").split()
    return told != [b"%d" % child]


def kill_below(ancestor: int, spared: Container[int] = (), *, itself: bool = False) -> set[int]:
    """Kill a process's descendants except `spared`, and the process if `itself`; return the killed ids."""
    pids = [*(pid for pid in descendants(ancestor) if pid not in spared), *((ancestor,) if itself else ())]
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return set(pids)


def group_of(leader: int) -> list[int]:
    """Return the ids of the processes in a process group, even in inner pid namespaces; Linux only."""
    names = [name for name in os.listdir("/proc") if name.isdecimal()]
    return [int(name) for name in names if stat_fields(name)[2:3] == [b"%d" % leader]]


def are_stopped(pids: list[int]) -> bool:
    """Return whether all threads of these processes are stopped or have ended; Linux only."""
    return all(
        stat_fields(f"{pid}/task/{thread}")[:1] in ([b"T"], [b"t"], [b"Z"], [b"X"], [])
        for pid in pids
        for thread in threads(pid)
    )


def threads(pid: int) -> list[str]:
    """Return the ids of a process's threads; empty if the process has ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def descendants(ancestor: int) -> list[int]:
    """Return the ids of all living descendants of a process."""
    families = living_families()
    pids: list[int] = []
    pending = [ancestor]
    while pending:
        below = families.get(pending.pop(), [])
        pids += below
        pending += below
    return pids


def children(parent: int) -> list[int]:
    """Return the ids of a process's living children."""
    return living_families().get(parent, [])


def living_families() -> dict[int, list[int]]:
    """Return the ids of all living processes, by the id of the parent."""
    families: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if LINUX else ():
        fields = stat_fields(name) if name.isdecimal() else []
        if fields and fields[0] != b"Z":
            families.setdefault(int(fields[1]), []).append(int(name))
    return families


def stat_fields(pid: int | str) -> list[bytes]:
    """Return the fields of `/proc/<pid>/stat` that follow the process's name; empty if the process has ended."""
    data = read_file(f"/proc/{pid}/stat")
    return data[data.rfind(b")") + 1 :].split()


def identity(pid: int) -> dict[str, str | float | None]:
    """Return a process's id with further facts; no later process with the same id shares all facts."""
    fields = stat_fields(pid) if pid and LINUX else []
    return {
        "pid": pid or None,
        "pid_start": int(fields[19]) if fields else None,
        "boot_id": read_file("/proc/sys/kernel/random/boot_id").decode().strip(),
        "pid_namespace": os.readlink("/proc/self/ns/pid") if LINUX else "",
    }


def utc_text(seconds: float) -> str:
    """Return the Unix time `seconds` as ISO 8601 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def read_file(path: str) -> bytes:
    """Return the content of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def close_others(own: Sequence[int]) -> None:
    """Close all descriptors above 2 of this new fork, except `own`."""
    last = 2
    for descriptor in sorted(own):
        os.closerange(last + 1, descriptor)
        last = max(last, descriptor)
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
