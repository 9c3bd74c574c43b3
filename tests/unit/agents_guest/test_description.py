"""A guest's description: what it names, and in which order."""

import struct
from pathlib import Path

import pytest

from septet.agents.guest.description import GuestFiles, World, describe, guest_environment
from septet.agents.guest.named_paths import NamedPath
from septet.agents.guest.protections import Binding, Cover, OwnHome, SealedFolders, SystemFiles
from septet.agents.guest.system_calls import refused_system_calls


def test_a_guests_own_part_comes_after_what_covers_the_state_directory(tmp_path: Path) -> None:
    """A named path around the state directory opens nothing of it, and its root is sealed last."""
    state = tmp_path / "state"
    workspace, objects = state / "workspaces" / "wo-1", state / "mirrors" / "app.git" / "objects"
    for folder in (workspace, objects):
        folder.mkdir(parents=True)
    world = World(tmp_path / "home", (NamedPath(tmp_path, writable=True),), (state,))
    files = GuestFiles(workspace, objects, (str(state / "agent"),))
    order = [
        each
        for each in describe(world, files).protections
        if isinstance(each, (Binding, Cover, OwnHome, SealedFolders))
    ]
    assert order == [
        OwnHome(tmp_path / "home"),
        Binding(tmp_path, writable=True),
        Cover(state),
        Binding(workspace, writable=True),
        Binding(objects),
        SealedFolders((state, Path("/"))),
    ]


def test_a_home_within_the_state_directory_is_a_home_all_the_same(tmp_path: Path) -> None:
    """In a container both may lie on one volume: what covers the state directory does not cover the home."""
    state = tmp_path / "state"
    (state / "home").mkdir(parents=True)
    world = World(state / "home", covered=(state,))
    parts = [
        each for each in describe(world, GuestFiles(tmp_path)).protections if isinstance(each, (Cover, OwnHome))
    ]
    assert parts == [Cover(state), OwnHome(state / "home")]


def test_a_workspace_behind_a_link_is_found_by_both_of_its_paths(tmp_path: Path) -> None:
    """It is bound where it lies, for sessions know it by that, and the link is made anew."""
    (tmp_path / "disk" / "workspace").mkdir(parents=True)
    (tmp_path / "link").symlink_to("disk")
    arguments = describe(World(tmp_path / "home"), GuestFiles(tmp_path / "link" / "workspace")).arguments()
    text = " ".join(arguments)
    assert f"--symlink disk {tmp_path / 'link'}" in text
    assert f"--bind-try {tmp_path / 'disk' / 'workspace'}" in text
    assert f"--chdir {tmp_path / 'disk' / 'workspace'}" in text


def test_words_of_a_program_that_is_found_inside_are_not_looked_at(tmp_path: Path) -> None:
    """A check is a repository's word: without a program in its description nothing is bound for it."""
    bindings = [
        each for each in describe(World(tmp_path), GuestFiles(tmp_path)).protections if isinstance(each, Binding)
    ]
    assert bindings == [Binding(tmp_path, writable=True)]


def test_a_guest_keeps_its_temporary_files_to_itself() -> None:
    """The machine's folder for them is not there inside."""
    assert guest_environment({"TMPDIR": "/var/tmp/x", "XDG_RUNTIME_DIR": "/run/user/1", "HOME": "/h"}) == {
        "TMPDIR": "/tmp/guest",
        "HOME": "/h",
    }


def test_no_folder_of_the_machines_keys_is_seen() -> None:
    """Certificates are, and the settings of OpenSSL; what lies beside them is not."""
    seen = [Path(part) for part in SystemFiles().arguments() if part.startswith("/etc/")]
    assert [folder for path in seen for folder in (path, *path.rglob("*")) if folder.name == "private"] == []
    assert all(path in seen for path in (Path("/etc/ssl/certs"), Path("/etc/ssl/openssl.cnf")) if path.exists())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_of_system_calls_ends_in_decisions(machine: str) -> None:
    """Every jump leads to a step of the program, and the last step allows."""
    program = refused_system_calls(machine)
    steps = list(struct.iter_unpack("=HBBI", program))
    assert all(number + 1 + max(step[1], step[2]) < len(steps) for number, step in enumerate(steps[:-1]))
    assert steps[-1] == (0x06, 0, 0, 0x7FFF0000)


def test_an_unknown_machine_has_no_filter() -> None:
    """A guest of it starts all the same."""
    assert refused_system_calls("riscv64") == b""
