"""How much memory this machine or container has."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

_ROOT: Final = Path("/")
_TOTAL: Final = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)
_GROUPS: Final = (("sys/fs/cgroup", "", "memory.max"), ("sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes"))
"""Where control groups of versions 2 and 1 lie, which line of `/proc/self/cgroup` is theirs, and their limit."""


def memory_bytes(root: Path = _ROOT) -> int:
    """Return the machine's memory, or the tightest limit of the control groups that this process is in.

    Args:
        root: The file system's root, with `/proc` and `/sys`.

    Raises:
        OSError: There is no `/proc/meminfo`, as on another system than Linux.
    """
    match = _TOTAL.search((root / "proc/meminfo").read_text(encoding="ascii"))
    if match is None:
        raise OSError(0, "it does not tell the memory", str(root / "proc/meminfo"))
    return min([int(match[1]) * 1024, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process's own groups and of those around them; `max` is none."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for mount, controller, name in _GROUPS:
            if controller not in controllers.split(","):
                continue
            group = PurePosixPath(path.lstrip("/"))
            for each in (group, *group.parents):
                with suppress(OSError, ValueError):
                    yield int((root / mount / each / name).read_text(encoding="ascii"))
