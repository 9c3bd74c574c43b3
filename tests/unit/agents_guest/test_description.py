"""The protections in a guest's description, and their order."""

import struct
from pathlib import Path

import pytest

from septet.agents.guest.description import GuestFiles, World, describe, guest_environment
from septet.agents.guest.sandbox_parts import Cover, OwnHome
from septet.agents.guest.system_calls import refused_system_calls


def test_a_home_within_the_state_directory_is_a_home_all_the_same(tmp_path: Path) -> None:
    """The cover of the state directory does not cover a home inside it, as in a container with one volume."""
    state = tmp_path / "state"
    (state / "home").mkdir(parents=True)
    world = World(state / "home", covered=(state,))
    protections = describe(world, GuestFiles(tmp_path)).protections
    assert [each for each in protections if isinstance(each, (Cover, OwnHome))] == [
        Cover(state),
        OwnHome(state / "home"),
    ]


def test_a_workspace_behind_a_link_is_found_by_both_of_its_paths(tmp_path: Path) -> None:
    """The workspace is bound at its real path, by which sessions know it, and the link is made again."""
    (tmp_path / "disk" / "workspace").mkdir(parents=True)
    (tmp_path / "link").symlink_to("disk")
    arguments = describe(World(tmp_path / "home"), GuestFiles(tmp_path / "link" / "workspace")).arguments()
    text = " ".join(arguments)
    assert f"--symlink disk {tmp_path / 'link'}" in text
    assert f"--bind-try {tmp_path / 'disk' / 'workspace'}" in text
    assert f"--chdir {tmp_path / 'disk' / 'workspace'}" in text


def test_a_guest_keeps_its_temporary_files_to_itself() -> None:
    """The guest's TMPDIR is a folder of its own, and the machine's runtime folder is not passed on."""
    assert guest_environment({"TMPDIR": "/var/tmp/x", "XDG_RUNTIME_DIR": "/run/user/1", "HOME": "/h"}) == {
        "TMPDIR": "/tmp/guest",
        "HOME": "/h",
    }


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_of_system_calls_ends_in_decisions(machine: str) -> None:
    """Every jump leads to a step of the program, and the last step allows the call."""
    program = refused_system_calls(machine)
    steps = list(struct.iter_unpack("=HBBI", program))
    assert all(number + 1 + max(step[1], step[2]) < len(steps) for number, step in enumerate(steps[:-1]))
    assert steps[-1] == (0x06, 0, 0, 0x7FFF0000)
    assert refused_system_calls("riscv64") == b"", "an unknown machine"
