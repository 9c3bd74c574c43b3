"""Where guests get control groups of their own, and which reason is reported if they get none."""

import os
from pathlib import Path

import pytest

from septet.agents.processes.control_group import find_parent, make_group

MOUNTS = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"


def given(group: str) -> bool:
    """Say that systemd delegated a group: not every file system keeps the attribute of a delegated group."""
    return bool(group)


def machine(root: Path, own: str) -> Path:
    """Write the kernel's files about groups: this process is in one group, and its user owns the parent group."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"4:memory:/old\n0::{own}\n")
    (root / "proc/self/mounts").write_text(MOUNTS)
    group = root / "sys/fs/cgroup" / own.strip("/")
    group.mkdir(parents=True)
    (group.parent / "cgroup.controllers").write_text("cpu memory pids\n")
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (group.parent / name).write_text("")
    return group.parent


def test_guests_get_groups_beside_the_workers(tmp_path: Path) -> None:
    """A guest's group lies in the delegated group; the groups that dead processes left are removed."""
    service = machine(tmp_path, "/system.slice/septet.service/worker")
    assert find_parent(str(tmp_path), given) == (str(service), "")
    left, alive = service / "septet-guest-0", service / f"septet-guest-{os.getppid()}"
    left.mkdir()
    alive.mkdir()
    group = make_group(64 << 20, 40, str(service))
    assert group is not None
    assert group.folder == str(service / f"septet-guest-{os.getpid()}")
    assert (service / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (left.exists(), alive.exists()) == (False, True)
    assert not group.close()
    assert not Path(group.folder).exists()


@pytest.mark.parametrize(
    ("own", "changed", "content", "why"),
    [
        ("/a/worker", "proc/self/cgroup", "0::/../a/worker\n", "no control groups of version 2 are mounted"),
        ("/a/worker", "proc/self/cgroup", "0::/\n", "Septet is in the topmost group that it sees"),
        ("/a/worker", "sys/fs/cgroup/a/cgroup.controllers", "cpu pids", "the group /a has no control of memory"),
        ("/a/worker", "sys/fs/cgroup/a/cgroup.procs", "17\n", "processes are in the group /a itself"),
    ],
)
def test_where_there_is_none_it_is_said_why(
    tmp_path: Path, own: str, changed: str, content: str, why: str
) -> None:
    """Without a usable parent group the reason is reported, and no group is made."""
    machine(tmp_path, own)
    (tmp_path / changed).write_text(content)
    assert find_parent(str(tmp_path), given) == ("", why)
    assert make_group(64 << 20, 40, "") is None


def test_a_group_that_was_not_given_is_left_alone(tmp_path: Path) -> None:
    """Root may write to all groups, and a user to those of its own systemd; only a delegated group is used."""
    machine(tmp_path, "/system.slice/septet.service/worker")
    why = "the group /system.slice/septet.service around Septet's own was not delegated to its user"
    assert find_parent(str(tmp_path)) == ("", why)
