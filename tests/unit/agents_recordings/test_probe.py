"""The facts about an agent's program that need no call to its model."""

import os
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import ADAPTERS, adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.sandbox.probe import Probe, probe
from septet.agents.sandbox.sandbox import find_sandbox

NEEDING_LOGIN = sorted(name for name, adapter in ADAPTERS.items() if adapter.capabilities.needs_login)


def look(name: str, tmp_path: Path, body: str, **env: str) -> Probe:
    """Probe an agent whose program is `body`, for a user who is not root."""
    program = str(write_program(tmp_path / name, f"#!/bin/sh\n{body}\n"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env}
    return probe(adapter_for(name), Machine(environment, {name: program}, uid=1000), tmp_path)


@pytest.mark.parametrize("name", NEEDING_LOGIN)
def test_tested_version_is_known(name: str, tmp_path: Path) -> None:
    """The newest tested version is in range and a later version is not, with any words around the number."""
    newest = adapter_for(name).capabilities.tested_version
    seen = look(name, tmp_path, f"echo '{name} cli {newest} (build)'")
    assert (seen.version, seen.in_range, seen.obstacle) == (newest, True, None)
    assert newest in seen.tested
    newer = look(name, tmp_path, "echo 9999.0.1")
    assert (seen.is_newer, newer.is_newer, newer.in_range) == (False, True, False)


def test_version_between_the_oldest_and_the_newest_is_tested(tmp_path: Path) -> None:
    """Versions are compared by number, and every version in the range counts as tested."""
    assert look("claude", tmp_path, "echo 2.1.200").in_range
    assert not look("claude", tmp_path, "echo 2.1.99").in_range


@pytest.mark.parametrize("name", NEEDING_LOGIN)
def test_login_is_seen_by_variable_or_file(name: str, tmp_path: Path) -> None:
    """A variable or the first login file counts as a login; without them no login is found."""
    facts = adapter_for(name).capabilities
    assert look(name, tmp_path, "true").login is None
    variable = facts.login_variables[0]
    assert look(name, tmp_path, "true", **{variable: "made-up"}).login == variable
    path = tmp_path / facts.login_files[0].removeprefix("~/")
    path.parent.mkdir(parents=True)
    path.touch()
    assert look(name, tmp_path, "true").login == facts.login_files[0]


@pytest.mark.needs("bubblewrap")
def test_a_program_that_the_sandbox_lacks_a_part_of_is_told_with_the_remedy(tmp_path: Path) -> None:
    """A wrapper's program outside the sandbox is an obstacle until the worker's settings name its folder."""
    part = tmp_path / "elsewhere" / "claude"
    part.parent.mkdir()
    write_program(part, "#!/bin/sh\necho 2.1.329\n")
    program = str(write_program(tmp_path / "claude", f"#!/bin/sh\nexec {part}\n"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    for named, has_obstacle in (((), True), ((NamedPath(part.parent),), False)):
        sandbox = find_sandbox("auto", env, World(tmp_path, named))
        seen = probe(adapter_for("claude"), Machine(env, {"claude": program}, uid=1000), worktree, sandbox)
        assert (seen.version, seen.obstacle is not None) == ("2.1.329", has_obstacle)
        assert seen.obstacle is None or "SEPTET_GUEST_PATHS" in seen.obstacle.remedy
