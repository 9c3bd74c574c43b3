"""A worktree's `.git`, read as data without git."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git

from septet.errors import WorkspaceError
from septet.git.worktree.dot_git import Head, clear_locks, read_file, read_head, refuse_links, switch_head


@pytest.fixture
def dot_git(origin: Origin) -> Path:
    return origin.checkout / ".git"


def test_head_is_read_as_git_reads_it(origin: Origin, dot_git: Path) -> None:
    """Packed, loose, detached and nested HEADs are read without git, with git's result."""
    sha = origin.sha("main")
    assert Head("main", sha) == read_head(dot_git)

    git(origin.checkout, "checkout", "-q", "-b", "feat/ä-1")
    assert Head("feat/ä-1", sha) == read_head(dot_git)

    git(origin.checkout, "commit", "-q", "--allow-empty", "-m", "more")
    newer = git(origin.checkout, "rev-parse", "HEAD")
    assert Head("feat/ä-1", newer) == read_head(dot_git)

    git(origin.checkout, "pack-refs", "--all")
    assert Head("feat/ä-1", newer) == read_head(dot_git)

    git(origin.checkout, "checkout", "-q", "--detach", sha)
    assert Head(None, sha) == read_head(dot_git)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ref: refs/heads/none\n",
        b"ref: refs/heads/../../config\n",
        b"ref: ../../secret\n",
        b"ref: refs/heads/a b\n",
        b"ref: refs/heads/.hidden\n",
        b"ref: refs/heads/loop\n",
        b"not a sha\n",
        b"ABCDEF0123456789ABCDEF0123456789ABCDEF01\n",
        b"x" * 10_000,
    ],
)
def test_a_head_that_leads_to_no_commit_is_an_error(dot_git: Path, content: bytes) -> None:
    """A HEAD without a commit causes an error with a remedy, and no file outside is read."""
    (dot_git / "refs" / "heads").mkdir(exist_ok=True)
    (dot_git / "refs" / "heads" / "loop").write_text("ref: refs/heads/loop\n")
    (dot_git / "HEAD").write_bytes(content)

    with pytest.raises(WorkspaceError, match="leads to no commit") as error:
        read_head(dot_git)

    assert error.value.remedy


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    """A file that an agent made too large for a worker's memory is not read."""
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert read_file(tmp_path / "large", limit_bytes=10) is None
    assert read_file(tmp_path / "large", limit_bytes=11) == b"x" * 11


@pytest.mark.parametrize("make", [lambda head: head.symlink_to("secret"), os.mkfifo])
def test_a_symlink_or_a_fifo_is_no_head(dot_git: Path, make: Callable[[Path], None]) -> None:
    """A HEAD that is a symlink or a FIFO causes an error: only a plain file is read."""
    (dot_git / "secret").write_text("1" * 40)
    (dot_git / "HEAD").unlink()
    make(dot_git / "HEAD")
    with pytest.raises(WorkspaceError):
        read_head(dot_git)


def _remove(path: Path) -> None:
    path.rename(path.with_name("moved"))


def _link(path: Path) -> None:
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)


@pytest.mark.parametrize("damage", [_remove, _link])
@pytest.mark.parametrize("name", [".", "objects", "refs"])
def test_a_git_folder_that_is_none_is_refused(dot_git: Path, name: str, damage: Callable[[Path], None]) -> None:
    """A `.git`, `objects` or `refs` that is missing or a link is refused."""
    damage(dot_git if name == "." else dot_git / name)

    with pytest.raises(WorkspaceError, match="no longer a plain folder"):
        read_head(dot_git)


@pytest.mark.parametrize("linked", ["heads", "heads/feat"])
def test_a_ref_folder_that_leads_out_is_refused(dot_git: Path, tmp_path: Path, linked: str) -> None:
    """A ref folder that the agent made a link is refused, so that no branch is written through the link."""
    outside = tmp_path / "outside"
    (outside / "x").mkdir(parents=True)
    (outside / "important.lock").write_text("theirs")
    folder = dot_git / "refs" / linked
    folder.parent.mkdir(exist_ok=True)
    if folder.exists():
        folder.rename(tmp_path / "moved")
    folder.symlink_to(outside)

    with pytest.raises(WorkspaceError, match="points outside"):
        refuse_links(dot_git, "feat/x/1")
    if linked == "heads":
        with pytest.raises(WorkspaceError, match="points outside"):
            clear_locks(dot_git)

    assert (outside / "important.lock").exists()


def test_switching_takes_nobody_by_surprise(origin: Origin, dot_git: Path) -> None:
    """HEAD moves only from its expected value, and not while another git holds its lock."""
    was = read_head(dot_git)
    git(origin.checkout, "branch", "topic")
    (dot_git / "HEAD.lock").touch()
    with pytest.raises(WorkspaceError, match=r"HEAD\.lock"):
        switch_head(dot_git, "topic", was)
    (dot_git / "HEAD.lock").unlink()

    with pytest.raises(WorkspaceError, match="moved"):
        switch_head(dot_git, "topic", Head("main", "1" * 40))
    assert was == read_head(dot_git)
    assert not (dot_git / "HEAD.lock").exists()

    switch_head(dot_git, "topic", was)
    assert Head("topic", was.sha) == read_head(dot_git)
    assert git(origin.checkout, "branch", "--show-current") == "topic"
