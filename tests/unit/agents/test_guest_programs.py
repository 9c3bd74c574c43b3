"""Programs in a repository's commands: guests find them, or the remedy names the setting that shows them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

from septet.agents.guest.description import GuestFiles, World
from septet.agents.guest.paths import parse_named_paths
from septet.agents.sandbox.probe import missing_programs
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox


class Desk:
    """A user's home with the user's own programs, a workspace, and the sandbox of this machine."""

    def __init__(self, root: Path) -> None:
        self.home, self.workspace = root / "home", root / "workspace"
        self.workspace.mkdir()
        write_program(self.home / "bin" / "mytool", "#!/bin/sh\necho it runs\n")
        self.sandbox = find_sandbox("auto", os.environ, World(self.home))

    @property
    def env(self) -> dict[str, str]:
        folders = (self.home / ".local" / "bin", self.home / "bin")
        return {"PATH": f"{os.pathsep.join(map(str, folders))}:{os.defpath}", "HOME": str(self.home)}

    def missing(self, *names: str, sandbox: Sandbox | None = None) -> list[tuple[str, str]]:
        commands = [[name, "--check"] for name in names]
        found = missing_programs(sandbox or self.sandbox, self.workspace, self.env, commands, "Check")
        return [(each.message, each.remedy) for each in found]

    def with_setting(self, remedy: str) -> Sandbox:
        """Return the sandbox of a worker with the setting that a remedy names."""
        paths = remedy.partition('SEPTET_GUEST_PATHS="')[2].partition('"')[0].split(",")
        world = World(self.home, parse_named_paths(tuple(paths), self.home))
        return replace(self.sandbox, world=world)

    def run(self, *argv: str, sandbox: Sandbox | None = None) -> str:
        files = GuestFiles(self.workspace, env=self.env)
        ended = (sandbox or self.sandbox).run(("/usr/bin/env", *argv), files, self.env, 30.0)
        return (ended.stdout + ended.stderr).decode()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.needs("bubblewrap")
def test_a_program_that_is_a_part_of_something_is_shown_with_it(desk: Desk) -> None:
    """For a program of pipx the remedy adds the link on PATH and its virtual environment to the worker's paths."""
    place = desk.home / ".local" / "share" / "pipx" / "venvs" / "tool"
    write_program(place / "bin" / "tool", f"#!/bin/sh\ncat {place}/words\n")
    (place / "pyvenv.cfg").touch()
    (place / "words").write_text("its own words\n", encoding="utf-8")
    (desk.home / ".local" / "bin").mkdir()
    (desk.home / ".local" / "bin" / "tool").symlink_to(place / "bin" / "tool")
    named = parse_named_paths(("~/cache:rw", "/opt"), desk.home)
    ((_, remedy),) = desk.missing("tool", "tool", sandbox=replace(desk.sandbox, world=World(desk.home, named)))
    own = f"{desk.home}/cache:rw,/opt"
    assert f'SEPTET_GUEST_PATHS="{own},~/.local/bin/tool,~/.local/share/pipx/venvs/tool"' in remedy
    assert "its own words" in desk.run("tool", sandbox=desk.with_setting(remedy))


def test_a_program_that_is_nowhere_is_told_without_a_setting(desk: Desk) -> None:
    """The message about a program that does not exist names no setting; nothing of the system or the repository is missing."""
    for sandbox in (desk.sandbox, Sandbox()):
        (_, first), (_, second) = desk.missing("no-such-program", "/no/such/program", sandbox=sandbox)
        assert "GUEST_PATHS" not in first + second
    assert desk.missing("mytool", sandbox=Sandbox()) == []
    assert desk.missing("sh", "/usr/bin/env", "./own.sh", ".venv/bin/pytest") == []
