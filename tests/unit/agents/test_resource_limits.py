"""A supervisor's measurement of the processes below it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from septet.agents.processes.memory import OpenFiles, most_memory_bytes
from septet.agents.processes.order import Limits, Order
from septet.agents.processes.resource_limits import ResourceWatch, tree_below, use_more_memory

pytestmark = pytest.mark.needs("Linux")

MIB = 1 << 20
_FILLS = """
import mmap, os, sys
def fill(kind):
    memory = mmap.mmap(-1, 40 << 20, kind)
    for page in range(0, len(memory), 4096):
        memory[page] = 1
    return memory
kept = []
"""
_SHARED_BY_ALL = "kept.append(fill(mmap.MAP_SHARED))\n{fork}sum(kept[0][::4096])\n"
_SHARED_BY_NONE = "{fork}kept.append(fill(mmap.MAP_SHARED))\n"
_OWN = "{fork}kept.append(fill(mmap.MAP_PRIVATE))\n"
_FORKS = "for _ in range(3):\n    if os.fork() == 0:\n        break\n"
_WAITS = "print('ready', flush=True)\nsys.stdin.read()\n"


@contextmanager
def processes_with(program: str) -> Iterator[list[int]]:
    """Run a program that becomes four processes, and yield their ids when each is ready."""
    text = _FILLS + program.format(fork=_FORKS) + _WAITS
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as root:
        assert root.stdout is not None
        assert [root.stdout.readline() for _ in range(4)] == [b"ready\n"] * 4
        children = [child.pid for child in psutil.Process(root.pid).children(recursive=True)]
        yield [root.pid, *children]
        assert root.stdin is not None
        root.stdin.close()


@pytest.mark.parametrize(("program", "mib"), [(_OWN, 160), (_SHARED_BY_NONE, 160), (_SHARED_BY_ALL, 40)])
def test_memory_counts_once_whoever_shares_it(program: str, mib: int) -> None:
    """Shared memory counts once, also if it is shared with other processes or among forks."""
    with processes_with(program) as pids:
        assert use_more_memory(pids, (mib - 5) * MIB)
        assert not use_more_memory(pids, (mib + 60) * MIB)


_NAMELESS = "kept.append(os.memfd_create('x'))\nos.write(kept[0], bytes(40 << 20))\n{fork}"
_MAPPED = _NAMELESS + "kept.append(mmap.mmap(kept[0], 40 << 20))\nsum(kept[1][::4096])\n"


@pytest.mark.parametrize("program", [_NAMELESS, _MAPPED])
def test_a_file_in_memory_without_a_name_counts_once(program: str) -> None:
    """The file counts once, whether no process maps it or four do."""
    with processes_with(program) as pids:
        nameless = OpenFiles(pids).nameless_files
        assert sum(nameless.values()) == 40 * MIB
        assert use_more_memory(pids, 35 * MIB, nameless=nameless)
        assert not use_more_memory(pids, 100 * MIB, nameless=nameless)


_SOCKETS = "import socket\nkept.extend(socket.socketpair() + os.pipe())\n{fork}"


def test_what_forks_share_of_sockets_and_pipes_counts_once() -> None:
    """Four processes share two sockets and a pipe, beside the two pipes of their stdin and stdout."""
    with processes_with(_SOCKETS) as pids:
        assert len(OpenFiles(pids).connections) == 5


SWAPPED = """\
Name:\tpython3
VmRSS:\t   10240 kB
RssAnon:\t    2048 kB
RssFile:\t    7168 kB
RssShmem:\t    1024 kB
VmSwap:\t   97280 kB
"""
"""The status file of a process whose memory is swapped out."""


@pytest.mark.parametrize(
    ("resources", "limit"), [({}, most_memory_bytes()), ({"memory_bytes": 9}, 9), ({"memory_bytes": 0}, 0)]
)
def test_the_memory_of_a_run_is_limited_where_it_runs(resources: dict[str, int], limit: int) -> None:
    """Without a limit in the order, the limit of the supervisor's machine or container holds, not the worker's."""
    limits = Limits(1.0, 1.0).with_resources(resources)
    watch = ResourceWatch(Order(folder="/r", directory="/w", argv=("/a",), env={}, limits=limits), 0.0)
    assert watch.memory_bytes == limit


def test_memory_that_is_swapped_out_counts(tmp_path: Path) -> None:
    """Own, shared and swapped memory all count: 2, 1 and 95 MiB."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(SWAPPED)
    assert use_more_memory([7], 97 * MIB, str(tmp_path))
    assert not use_more_memory([7], 98 * MIB, str(tmp_path))


def test_a_kernel_that_does_not_tell_children_is_asked_for_parents() -> None:
    """Without the kernel's lists of children, the parents of all processes give the same tree."""
    with processes_with("{fork}") as pids:
        found = tree_below(os.getpid(), tells_children=False)
        assert (sorted(found[0]), found[1]) == (sorted(tree_below(os.getpid())[0]), tree_below(os.getpid())[1])
        assert set(pids) <= set(found[0])
        assert not set(pids) & set(tree_below(os.getpid(), {pids[0]}, tells_children=False)[0])
