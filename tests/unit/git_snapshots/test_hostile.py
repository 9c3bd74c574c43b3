"""Attempts of an agent to make a snapshot lie, hang, fail or run a program."""

import ctypes
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.deep_folders import deep_folder
from fakes.pictures import picture, restored_picture
from fakes.repositories import git
from fakes.shell_programs import write_program

from septet.git.engine.place import Place
from septet.git.snapshots.patch import write_patch
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import Snapshot
from septet.git.vault.layout import read, read_left_out
from septet.git.vault.survey import MAX_DEPTH
from septet.git.vault.vault import vault_at, verify

pytestmark = pytest.mark.law

Snap = Callable[..., Snapshot]
_VERSION_3 = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    if os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    without = (ctypes.c_uint32 * 6)(*before)
    without[0] &= ~_OVERRIDES
    assert libc.capset(header, without) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


def test_nothing_of_the_agents_runs(place: Place, snap: Snap, tmp_path: Path) -> None:
    """A snapshot runs no filter, hook, monitor or other program of the agent, and converts no byte."""
    ran = tmp_path / "ran"
    spy = write_program(tmp_path / "spy", f"#!/bin/sh\necho $0 >> {ran}\ncat\n")
    tree = place.worktree
    for key in (
        "filter.spy.clean", "filter.spy.smudge", "filter.spy.process", "core.fsmonitor", "diff.external", "core.sshCommand",
        "diff.spy.command", "diff.spy.textconv", "core.editor", "gpg.program", "core.pager", "alias.ls-tree",
    ):  # fmt: skip
        git(tree, "config", key, str(spy))
    git(tree, "config", "core.autocrlf", "true")
    hooks = tree / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("pre-commit", "post-index-change", "reference-transaction", "post-checkout"):
        (hooks / hook).symlink_to(spy)
    (tree / ".gitattributes").write_text("* filter=spy diff=spy ident text\n*.txt working-tree-encoding=UTF-16\n")
    (tree / "converted.crlf").write_bytes(b"$Id$ a\r\nb\n")
    (tree / "no-utf-16.txt").write_bytes(b"plain\xff\n")
    before = picture(tree)
    snapshot = snap()
    verify(vault_at(place), snapshot)
    assert write_patch(place, snapshot, patch := tmp_path / "rescue.patch") == patch
    assert b"no-utf-16.txt" in patch.read_bytes()
    restore(vault_at(place), snapshot, tmp_path / "restored")
    settings = before.pop(b".git/config")
    assert {
        path: item
        for path, item in restored_picture(tmp_path / "restored", before).items()
        if path != b".git/config"
    } == {path: item for path, item in before.items() if not path.startswith(b".git/hooks/")}
    assert str(spy).encode() in settings[2]
    assert str(spy) not in (tmp_path / "restored" / ".git" / "config").read_text()
    assert not ran.exists()


def test_links_are_stored_as_links(place: Place, snap: Snap, tmp_path: Path) -> None:
    """A file or folder that became a link is stored as a link, and the snapshot reads nothing behind the link."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "one.txt").write_text("secret\n")
    tree = place.worktree
    (tree / "README.md").unlink()
    (tree / "README.md").symlink_to(secret / "one.txt")
    (tree / "src/deep/er/one.txt").unlink()
    (tree / "src/deep/er").rmdir()
    (tree / "src/deep/er").symlink_to(secret)
    (tree / ".gitignore").unlink()
    (tree / ".gitignore").symlink_to("/dev/zero")
    items = read(vault_at(place), snap().commit)
    assert {items[path].mode for path in (b"README.md", b"src/deep/er", b".gitignore")} == {0o120000}
    assert b"src/deep/er/one.txt" not in items


def test_a_linked_git_folder_is_not_followed(place: Place, snap: Snap, tmp_path: Path) -> None:
    """A `.git` that is a link or contains links is stored as links, and no restore writes through them."""
    tree, outside = place.worktree, tmp_path / "outside"
    outside.mkdir()
    (tree / ".git/objects/pack").rmdir()
    (tree / ".git/objects/pack").symlink_to(outside)
    (tree / ".git/config").unlink()
    (tree / ".git/config").symlink_to(outside / "config")
    before = picture(tree)
    restore(vault_at(place), snap(), tmp_path / "part")
    part = picture(tmp_path / "part")
    assert part.pop(b".git/config")[2].startswith(b"[core]")
    assert part == {path: item for path, item in before.items() if path != b".git/config"}
    (tree / ".git").rename(outside / "git")
    (tree / ".git").symlink_to(outside / "git")
    snapshot = snap()
    restore(vault_at(place), snapshot, tmp_path / "whole")
    assert read(vault_at(place), snapshot.commit)[b".git"].mode == 0o120000
    assert sorted(path.name for path in outside.iterdir()) == ["git"]


def test_what_is_no_file_is_listed(place: Place, snap: Snap) -> None:
    """The snapshot omits and lists FIFOs and sockets, and contains all other files."""
    os.mkfifo(place.worktree / "src/fifo")
    folder = Path.cwd()
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(place.worktree)
        try:
            listening.bind("socket")
        finally:
            os.chdir(folder)
        (place.worktree / "README.md").write_text("changed\n")
        snapshot = snap()
    assert [(item.path, item.reason) for item in snapshot.left_out] == [
        ("socket", "a socket"),
        ("src/fifo", "a FIFO"),
    ]
    assert git(place.vault, "cat-file", "blob", f"{snapshot.commit}:tree/README.md") == "changed"
    assert snap().left_out == snapshot.left_out


def test_what_cannot_be_read_is_listed(place: Place, snap: Snap) -> None:
    """The snapshot omits and lists unreadable files and folders, and takes them once they are readable."""
    tree = place.worktree
    (tree / "README.md").chmod(0)
    (tree / "src").chmod(0)
    (tree / "sealed").mkdir()
    (tree / "sealed/file").write_text("x")
    (tree / "sealed").chmod(0o400)
    try:
        with bound_by_permissions():
            snapshot = snap()
    finally:
        for path in ("README.md", "src", "sealed"):
            (tree / path).chmod(0o755)
    assert {item.path: item.reason for item in snapshot.left_out} == {
        "README.md": "not readable: Permission denied",
        "sealed/file": "not readable: Permission denied",
        "src": "not readable: Permission denied",
    }
    assert read_left_out(vault_at(place), snapshot.commit).keys() == {b"README.md", b"sealed/file", b"src"}
    again = snap()
    assert again.left_out == ()
    assert b"src/app.py" in read(vault_at(place), again.commit)


def test_paths_beyond_what_the_system_opens(place: Place, snap: Snap, tmp_path: Path) -> None:
    """A restore brings back a path that is longer than the system's limit; the patch omits only this path."""
    name = "n" * 200
    with deep_folder(place.worktree, name, 25) as folder:
        descriptor = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(descriptor, b"deep\n")
        os.close(descriptor)
    (place.worktree / "README.md").write_text("changed\n")
    snapshot = snap()
    patch = write_patch(place, snapshot, tmp_path / "rescue.patch")
    assert patch is not None
    assert patch.read_text().count("diff --git") == 1
    assert snapshot.left_out == ()
    restore(vault_at(place), snapshot, tmp_path / "restored")
    path = b"/".join([name.encode()] * 25) + b"/file"
    assert read(vault_at(place), snapshot.commit)[path].size == 5
    with deep_folder(tmp_path / "restored", name, 25) as folder:
        descriptor = os.open("file", os.O_RDONLY, dir_fd=folder)
        assert os.read(descriptor, 100) == b"deep\n"
        os.close(descriptor)


def test_a_bottomless_folder_is_listed(place: Place, snap: Snap) -> None:
    """The snapshot omits and lists folders deeper than the limit, and contains the rest."""
    with deep_folder(place.worktree, "d", MAX_DEPTH + 200):
        (place.worktree / "README.md").write_text("changed\n")
    snapshot = snap()
    assert [item.reason for item in snapshot.left_out] == [f"more than {MAX_DEPTH} folders deep"]
    assert git(place.vault, "cat-file", "blob", f"{snapshot.commit}:tree/README.md") == "changed"


def test_ignore_rules_that_break_git_hide_nothing(place: Place, snap: Snap) -> None:
    """If git cannot say which files are ignored, the snapshot keeps all files, whatever the limit."""
    (place.worktree / ".gitignore").write_bytes(b"*\n")
    (place.worktree / "x.bin").write_bytes(os.urandom(10_000))
    assert [item.path for item in snap(limit_bytes=0).left_out] == ["x.bin"]
    broken = place.vault / "config"
    content = broken.read_bytes()
    broken.write_bytes(content + b"[core\n")
    (place.worktree / "x.bin").rename(place.worktree / "y.bin")
    snapshot = snap(limit_bytes=0)
    broken.write_bytes(content)
    assert snapshot.left_out == ()


def test_thousands_of_left_out_names_stay_readable(place: Place, snap: Snap) -> None:
    """The snapshot's own list ends with the number of further paths; the manifest has all paths."""
    (place.worktree / "pipes").mkdir()
    for number in range(300):
        os.mkfifo(place.worktree / f"pipes/{number:03d}")
    snapshot = snap()
    assert len(snapshot.left_out) == 201
    assert snapshot.left_out[-1].path == "… and 100 more"
    assert len(read_left_out(vault_at(place), snapshot.commit)) == 300


@pytest.mark.parametrize("name", [b"bad \xff name", "…".encode()])
def test_left_out_names_are_shown(place: Place, snap: Snap, name: bytes) -> None:
    """The list shows the bytes of a name that is not UTF-8 as escapes."""
    os.mkfifo(os.fsencode(place.worktree) + b"/" + name)
    assert [item.path for item in snap().left_out] == [name.decode(errors="backslashreplace")]
