"""A restore returns every state of a workspace bit for bit."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.messes import commit, conflict, nest, swap_file_and_folder
from fakes.pictures import picture, restored_picture
from fakes.repositories import git

from septet.git.engine.place import Place
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import vault_at, verify

pytestmark = pytest.mark.law

Change = Callable[[Path], object]


def _write(name: str, content: bytes | str) -> Change:
    def write(tree: Path) -> None:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def _stage_then_change(tree: Path) -> None:
    (tree / "src/app.py").write_text("staged\n")
    git(tree, "add", "src/app.py")
    (tree / "src/app.py").write_text("changed again\n")


def _stash(tree: Path) -> None:
    (tree / "src/app.py").write_text("stashed\n")
    git(tree, "stash", "-q")


def _empty_folders(tree: Path) -> None:
    (tree / "empty/in/empty").mkdir(parents=True)
    (tree / "src/deep/er/one.txt").unlink()


def _modes(tree: Path) -> None:
    (tree / "README.md").chmod(0o600)
    (tree / "run.sh").chmod(0o644)
    (tree / "src/app.py").chmod(0o4755)
    (tree / "logo.bin").chmod(0o444)
    (tree / "src/deep").chmod(0o711)
    (tree / "open").mkdir()
    (tree / "open").chmod(0o1777)


def _links(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "dangling").symlink_to("nowhere/at all")
    (tree / "to folder").symlink_to("src")


def _strange_names(tree: Path) -> None:
    for name in (
        b"new\nline",
        b"not utf-8 \xff\xfe",
        b"tab\t",
        b'quote"',
        b"back\\slash",
        b":magic",
        b" ",
        b"-rf",
        b"*?[",
    ):
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_bytes(name)


def _refused_names(tree: Path) -> None:
    for name in (".GIT", "git~1", ".git ", "a\\.git", ".g\u200cit"):
        (tree / "src" / name).write_text(name)
    (tree / "sub/.Git/hooks").mkdir(parents=True)
    (tree / "sub/.Git/hooks/pre-commit").write_text("#!/bin/sh\n")
    (tree / "sub/.Git/.git").write_text("twice\n")


def _nest_twice(tree: Path) -> None:
    nest(tree, "a")
    nest(tree, "a/b")


def _detach(tree: Path) -> None:
    commit(tree, a="1")
    git(tree, "checkout", "-q", "HEAD~1")


CASES: dict[str, Change] = {
    "tracked": _write("src/app.py", "changed\n"),
    "untracked": _write("new/file.txt", "new\n"),
    "ignored file": _write("debug.log", "kept\n"),
    "ignored folder": _write("dist/js/app.js", "kept\n"),
    "staged, then changed": _stage_then_change,
    "deleted": lambda tree: (tree / "src/app.py").unlink(),
    "deleted and staged": lambda tree: git(tree, "rm", "-q", "src/app.py"),
    "renamed": lambda tree: git(tree, "mv", "src/app.py", "moved.py"),
    "larger than one piece": _write("large.bin", os.urandom(3 << 20)),
    "CRLF that git would convert": _write("converted.crlf", "a\nb\r\nc\n"),
    "links": _links,
    "modes": _modes,
    "empty file": _write("nothing", b""),
    "empty folders": _empty_folders,
    "file and folder change places": swap_file_and_folder,
    "nested repository": lambda tree: nest(tree, "vendor/lib"),
    "nested repository, ignored": lambda tree: nest(tree, "dist/lib"),
    "nested repository in a nested one": _nest_twice,
    "merge under way, index unmerged": lambda tree: conflict(tree, "merge"),
    "rebase under way": lambda tree: conflict(tree, "rebase"),
    "cherry-pick under way": lambda tree: conflict(tree, "cherry-pick"),
    "commits of the agent": lambda tree: commit(tree, a="1", b="2"),
    "detached HEAD": _detach,
    "stash": _stash,
    "strange names": _strange_names,
    "names that git refuses": _refused_names,
    "no .git": lambda tree: (tree / ".git").rename(tree / "was-git"),
    "corrupt .git": lambda tree: (
        (tree / ".git/HEAD").write_bytes(b"\0\xff"),
        (tree / ".git/index").write_bytes(b"no"),
    ),
}


@pytest.mark.parametrize("change", CASES.values(), ids=CASES)
def test_a_snapshot_gives_back_what_it_took(
    place: Place, snap: Callable[[], Snapshot], tmp_path: Path, change: Change
) -> None:
    """A restore returns names, types, bytes, permissions, index, HEAD and an unfinished merge or rebase."""
    change(place.worktree)
    before = picture(place.worktree)
    snapshot = snap()
    assert picture(place.worktree) == before
    assert snapshot.left_out == ()
    verify(vault_at(place), snapshot)
    place.worktree.rename(tmp_path / "gone")
    restore(vault_at(place), snapshot, tmp_path / "restored")
    assert restored_picture(tmp_path / "restored", before) == before


def test_a_file_that_names_another_repository_is_not_restored(
    place: Place, snap: Callable[[], Snapshot], tmp_path: Path
) -> None:
    """A restore omits a `.git` file that names another repository, since a person's git would obey the file."""
    (place.worktree / ".git").rename(place.worktree / "was-git")
    (place.worktree / ".git").write_text("gitdir: was-git\n")
    before = picture(place.worktree)
    restore(vault_at(place), snap(), tmp_path / "restored")
    del before[b".git"]
    assert picture(tmp_path / "restored") == before
