"""The chaos program's evidence about a work order from git and the forge."""

import os
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin

from bench.chaos.evidence import blobs_in, blobs_in_tree, delivered
from septet.forges.local.forge import LocalForge
from septet.forges.values import NewPullRequest

HEAD = "chore-wo-001-chaos"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    made = make_origin(tmp_path, "app.git")
    git(Path(made.bare), "config", "core.logAllRefUpdates", "always")
    made.push({"README.md": "# app\n"})
    for content in ("one", "two"):
        made.push({"a.txt": content}, HEAD)
    return made


def test_commits_pushes_and_pull_requests_are_counted(origin: Origin) -> None:
    """Each commit beyond the base, each push and the branch's pull request count."""
    assert not delivered(Path(origin.bare), "wo-001", os.environ).completed
    new = NewPullRequest(head=HEAD, base="main", title="t", body="b", marker="wo-001")
    LocalForge(Path(origin.bare), env=dict(os.environ)).open_pull_request(new)
    found = delivered(Path(origin.bare), "wo-001", os.environ)
    assert (found.completed, found.commits, found.pushes, found.pull_requests) == (True, 2, 2, 1)
    assert not delivered(Path(origin.bare), "wo-00", os.environ).branches


def test_a_content_is_kept_where_a_ref_reaches_it_or_a_file_holds_it(origin: Origin) -> None:
    """A content counts as kept in any commit of any branch, or in a file of the worktree."""
    one = git(origin.checkout, "hash-object", "--stdin", stdin=b"one")
    assert one in blobs_in(Path(origin.bare), os.environ)
    assert one not in blobs_in_tree(origin.checkout, os.environ)
