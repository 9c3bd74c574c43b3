from pathlib import Path

import pytest

from septet.agents.processes.memory import memory_bytes, most_memory_bytes

MIB = 1024 * 1024


def machine(root: Path, groups: str = "", **limits: str) -> Path:
    """Write the kernel's files: 1,000 MiB of memory, and the limits of some control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal:       {1000 * 1024} kB\nMemFree:  1 kB\n", encoding="ascii")
    (root / "proc/self/cgroup").write_text(groups, encoding="utf-8")
    for path, limit in limits.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n", encoding="ascii")
    return root


@pytest.mark.parametrize(
    ("groups", "limits", "mib"),
    [
        ("", {}, 1000),
        ("0::/\n", {"memory.max": str(300 * MIB)}, 300),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": str(400 * MIB)}, 400),
        ("0::/a/b\n", {"a/b/memory.max": str(5000 * MIB)}, 1000),
        ("4:cpu:/x\n3:memory:/d\n", {"memory/d/memory.limit_in_bytes": str(200 * MIB)}, 200),
        ("3:memory:/elsewhere\n", {"memory/memory.limit_in_bytes": str(250 * MIB)}, 250),
    ],
    ids=["no groups", "a container", "a group around it", "more than there is", "version 1", "bound"],
)
def test_memory_is_the_machines_or_the_tightest_limit(
    tmp_path: Path, groups: str, limits: dict[str, str], mib: int
) -> None:
    """The tightest limit counts: of the machine, of a control group of either version, or of a group around it."""
    assert memory_bytes(str(machine(tmp_path, groups, **limits))) == mib * MIB


def test_an_agent_may_take_three_quarters_of_it(tmp_path: Path) -> None:
    """An agent gets three quarters of the memory, and no limit if the memory is unknown."""
    assert most_memory_bytes(str(machine(tmp_path, "0::/\n", **{"memory.max": str(400 * MIB)}))) == 300 * MIB
    assert most_memory_bytes(str(tmp_path / "silent")) == 0
