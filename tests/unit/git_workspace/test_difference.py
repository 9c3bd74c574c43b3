import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.pictures import picture
from fakes.repositories import git

from septet.git.engine.place import Place
from septet.git.evidence.difference import FileCount, difference
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import view_folder

LIMIT = 10_000


def test_what_an_agent_changed_is_seen_committed_or_not(place: Place) -> None:
    """New, changed and deleted files are shown, committed or not; ignored files are not shown."""
    work = place.worktree
    (work / "README.md").write_text("# Sample\n\nMore.\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "half")
    (work / "src" / "app.py").unlink()
    (work / "specs").mkdir()
    (work / "specs" / "plan.md").write_text("# Plan\n")
    (work / "picture.bin").write_bytes(bytes(range(256)))
    (work / "debug.log").write_text("ignored\n")
    found = difference(place, limit_bytes=LIMIT)
    assert found.files == (
        FileCount("README.md", 2, 0),
        FileCount("picture.bin", None, None),
        FileCount("specs/plan.md", 1, 0),
        FileCount("src/app.py", 0, 20),
    )
    assert found.whole
    assert "+More.\n" in found.patch
    assert "+# Plan\n" in found.patch


def test_a_look_costs_what_is_shown_of_it(place: Place) -> None:
    """The difference of many large files reads and writes no more than the limit requires."""
    line = "x" * 1000 + "\n"
    for number in range(30):
        (place.worktree / f"{number}.txt").write_text(line * 1000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = difference(place, limit_bytes=1000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (len(found.files), len(found.patch), found.whole) == (30, 1000, False)
    assert after.ru_oublock - before.ru_oublock < 10_000


def test_looking_writes_nothing(place: Place) -> None:
    """The difference changes neither the worktree nor `.git` nor the engine's view."""
    (place.worktree / "new.txt").write_text("new\n")
    before = picture(place.worktree), picture(view_folder(place))
    difference(place, limit_bytes=LIMIT)
    assert (picture(place.worktree), picture(view_folder(place))) == before


def test_a_symlink_is_shown_as_one(place: Place, tmp_path: Path) -> None:
    """The difference shows a symlink and not the file or folder behind it."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("very secret\n")
    (place.worktree / "key").symlink_to(secret / "key")
    (place.worktree / "folder").symlink_to(secret)
    found = difference(place, limit_bytes=LIMIT)
    assert [file.path for file in found.files] == ["folder", "key"]
    assert "very secret" not in found.patch


def _nothing(root: Path) -> None:
    """Leave the worktree as it is."""


@pytest.mark.parametrize(
    ("spoil", "path"),
    [
        (lambda root: (root / "plan.md").symlink_to(root.parent / "outside.md"), "plan.md"),
        (lambda root: (root / "specs").symlink_to(root.parent), "specs/outside.md"),
        (lambda root: os.mkfifo(root / "plan.md"), "plan.md"),
        (_nothing, "../outside.md"),
        (_nothing, "/etc/hostname"),
        (_nothing, "no\0name"),
        (_nothing, ""),
    ],
)
def test_nothing_outside_a_worktree_is_read(tmp_path: Path, spoil: Callable[[Path], None], path: str) -> None:
    """A symlink in the path, a pipe, `..` and an absolute path return nothing."""
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside.md").write_text("outside\n")
    spoil(root)
    assert read_inside(root, path, 100) is None


def test_a_file_inside_is_read_to_the_limit(tmp_path: Path) -> None:
    """A plain file is read up to the limit."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "plan.md").write_text("# Plan\n")
    assert read_inside(tmp_path, "specs/plan.md", 6) == b"# Plan"
