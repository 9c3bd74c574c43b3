"""A commit of few objects with more files than any disk holds."""

from dataclasses import replace

import pytest
from fakes.repositories import git

from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.worktree.view import hold_head

DEEP, WIDE = 9, 10


def _tree(mode: str, kind: str, sha: str) -> bytes:
    return "".join(f"{mode} {kind} {sha}\t{name}\n" for name in range(WIDE)).encode()


@pytest.mark.parametrize("leaf", ["blob", "tree"])
@pytest.mark.timeout(60)
def test_a_tree_that_unfolds_without_end_is_refused_by_the_name_of_its_limit(place: Place, leaf: str) -> None:
    """A thousand million files or empty folders in ten objects are refused at the limit of entries."""
    if leaf == "blob":
        sha, mode = git(place.worktree, "hash-object", "-w", "--stdin", stdin=b"x"), "100644"
    else:
        sha, mode = git(place.worktree, "mktree"), "040000"
    kind = leaf
    for _ in range(DEEP):
        sha = git(place.worktree, "mktree", stdin=_tree(mode, kind, sha))
        mode, kind = "040000", "tree"
    git(place.worktree, "update-ref", "HEAD", git(place.worktree, "commit-tree", sha, "-m", "bomb"))
    with pytest.raises(WorkspaceError, match="tree limit of 1000000 entries reached"):
        hold_head(place)


@pytest.mark.timeout(60)
def test_a_commit_that_unfolds_to_too_many_bytes_is_refused_by_the_name_of_its_limit(place: Place) -> None:
    """A large file that appears ten thousand times is refused at the limit of bytes; a setting moves the limit."""
    (place.worktree / "large.bin").write_bytes(b"0" * 2_000_000)
    sha, mode, kind = git(place.worktree, "hash-object", "-w", "large.bin"), "100644", "blob"
    for _ in range(4):
        sha = git(place.worktree, "mktree", stdin=_tree(mode, kind, sha))
        mode, kind = "040000", "tree"
    git(place.worktree, "update-ref", "HEAD", git(place.worktree, "commit-tree", sha, "-m", "bomb"))
    with pytest.raises(WorkspaceError, match=r"tree limit of 10240 MiB reached.*SEPTET_TREE_LIMIT_MIB"):
        hold_head(replace(place, tree_limit_bytes=10 << 30))
    assert hold_head(replace(place, tree_limit_bytes=20 << 30)).sha == git(place.worktree, "rev-parse", "HEAD")
