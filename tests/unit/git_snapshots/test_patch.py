"""Plain git applies `rescue.patch` to the base commit and gets the agent's files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin
from fakes.snapshots import snapshot_of

from septet.errors import SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.patch import write_patch
from septet.git.vault.facts import Snapshot

Snap = Callable[..., Snapshot]


def _applied(place: Place, origin: Origin, snapshot: Snapshot, folder: Path) -> Path:
    """Return a fresh clone of the origin with the snapshot's patch applied and staged."""
    patch = write_patch(place, snapshot, folder / "rescue.patch")
    assert patch == folder / "rescue.patch"
    clone = folder / "clone"
    git(folder, "clone", "-q", str(origin.bare), str(clone))
    git(clone, "apply", "--check", str(patch))
    git(clone, "apply", "--index", str(patch))
    return clone


def test_the_patch_holds_all_but_what_is_ignored(place: Place, origin: Origin, snap: Snap, tmp_path: Path) -> None:
    """The patch contains tracked, untracked, binary, renamed, deleted, linked, empty and committed changes."""
    tree = place.worktree
    (tree / "committed.txt").write_text("by the agent\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "agent")
    git(tree, "mv", "src/app.py", "src/main.py")
    (tree / "README.md").write_text("no newline at the end")
    (tree / "logo.bin").write_bytes(os.urandom(2000))
    (tree / "new.bin").write_bytes(os.urandom(2000))
    (tree / "windows.txt").unlink()
    (tree / "run.sh").chmod(0o644)
    (tree / "program").write_text("#!/bin/sh\n")
    (tree / "program").chmod(0o755)
    (tree / "link").unlink()
    (tree / "link").symlink_to("src")
    (tree / "nothing").touch()
    (tree / "x.log").write_text("ignored\n")
    (tree / "src/deep/er/one.txt").unlink()
    (tree / "src/deep/er").rmdir()
    (tree / "src/deep/er").write_text("a file now\n")
    (tree / "empty.txt").unlink()
    (tree / "empty.txt").mkdir()
    (tree / "empty.txt/inside").write_text("a folder now\n")
    for name in (b"new\nline", b"bytes \xff", b'"quoted"\t'):
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_bytes(name)
    clone = _applied(place, origin, snap(), tmp_path)
    (tree / "x.log").unlink()
    assert _listing(clone) == _listing(tree)
    assert "rename from src/app.py" in (tmp_path / "rescue.patch").read_text(errors="replace")


def _listing(tree: Path) -> str:
    """Return the files that git would commit, as modes, ids and names."""
    git(tree, "add", "-A")
    return git(tree, "ls-files", "-s", "-z")


def test_line_endings_are_as_the_repository_has_them(
    place: Place, origin: Origin, snap: Snap, tmp_path: Path
) -> None:
    """The patch has LF for a file with LF in the repository and CRLF in the worktree; other files keep CRLF."""
    (place.worktree / "converted.crlf").write_bytes(b"a\r\nb\r\nc\r\n")
    (place.worktree / "windows.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    (place.worktree / "new.crlf").write_bytes(b"mixed\r\nendings\n")
    clone = _applied(place, origin, snap(), tmp_path)
    assert git(clone, "diff", "--cached", "--numstat") == "1\t0\tconverted.crlf\n2\t0\tnew.crlf\n1\t0\twindows.txt"
    assert (clone / "converted.crlf").read_bytes() == b"a\r\nb\r\nc\r\n"
    assert b"c\r" in (tmp_path / "rescue.patch").read_bytes()


def test_removed_attributes_count_no_more(place: Place, origin: Origin, snap: Snap, tmp_path: Path) -> None:
    """After `.gitattributes` was removed, the patch has new files with their own bytes."""
    (place.worktree / ".gitattributes").unlink()
    (place.worktree / "new.crlf").write_bytes(b"a\r\n")
    assert git(_applied(place, origin, snap(), tmp_path), "cat-file", "-s", ":new.crlf") == "3"


def test_a_nested_repository_is_plain_files(place: Place, origin: Origin, snap: Snap, tmp_path: Path) -> None:
    """The patch has the files of a nested repository; only the snapshot has its `.git`."""
    inner = place.worktree / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "file.txt").write_text("nested\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "x")
    clone = _applied(place, origin, snap(), tmp_path)
    assert git(clone, "diff", "--cached", "--name-only") == "vendor/lib/file.txt"


def test_submodules_are_left_alone(open_place: Callable[..., Place], tmp_path: Path) -> None:
    """The patch contains no submodule, whether empty, checked out or removed, and the rest applies."""
    library, origin = make_origin(tmp_path / "a"), make_origin(tmp_path / "b")
    commit = library.push({"lib.txt": "lib\n"})
    origin.push({"README.md": "# x\n"})
    git(origin.checkout, "update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    git(origin.checkout, "update-index", "--add", "--cacheinfo", f"160000,{commit},other")
    git(origin.checkout, "commit", "-q", "-m", "submodules")
    git(origin.checkout, "push", "-q", "origin", "HEAD")
    place = open_place(of=origin)
    git(place.worktree, "clone", "-q", str(library.bare), "lib")
    (place.worktree / "other").rmdir()
    (place.worktree / "README.md").write_text("# y\n")
    clone = _applied(place, origin, snapshot_of(place, "rescue"), tmp_path)
    assert git(clone, "diff", "--cached", "--name-only") == "README.md"


def test_there_is_no_patch_of_nothing(place: Place, snap: Snap, tmp_path: Path) -> None:
    """No patch is written if only ignored files, modes that git does not record or the index differ."""
    (place.worktree / "x.log").write_text("ignored\n")
    (place.worktree / "README.md").chmod(0o600)
    git(place.worktree, "rm", "-q", "--cached", "windows.txt")
    assert write_patch(place, snap(), tmp_path / "rescue.patch") is None
    assert [path.name for path in tmp_path.iterdir() if "patch" in path.name] == []


def test_a_patch_that_cannot_be_written(place: Place, snap: Snap, tmp_path: Path) -> None:
    """A missing folder or a missing object causes an error."""
    (place.worktree / "README.md").write_text("changed\n")
    snapshot = snap()
    with pytest.raises(SnapshotError, match="could not be written.*rescue restore"):
        write_patch(place, snapshot, tmp_path / "no" / "folder" / "rescue.patch")
    for pack in (place.vault / "objects/pack").iterdir():
        pack.rename(tmp_path / pack.name)
    with pytest.raises(SnapshotError, match="manifest"):
        write_patch(place, snapshot, tmp_path / "rescue.patch")
