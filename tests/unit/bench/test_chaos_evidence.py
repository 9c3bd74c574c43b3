"""The chaos program's evidence about a work order from git and the forge."""

import os
from pathlib import Path

import pytest
from fakes.repositories import Origin, make_origin

from bench.chaos.evidence import blobs_in, blobs_in_tree, delivered
from septet.forges.local.forge import LocalForge
from septet.forges.values import NewPullRequest
from septet.system import processes

HEAD = "chore-wo-001-chaos"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    made = make_origin(tmp_path, "app.git")
    git(Path(made.bare), "config", "core.logAllRefUpdates", "always")
    made.push({"README.md": "# app\n"})
    return made


def git(repository: Path, *args: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@a",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@a",
    }
    done = processes.run(["git", "-C", str(repository), *args], env={**os.environ, **identity})
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode().strip()


def push(origin: Origin, tmp_path: Path, *contents: str) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(origin.bare), str(clone))
    git(clone, "checkout", "--quiet", "-b", HEAD)
    for content in contents:
        (clone / "a.txt").write_text(content, encoding="utf-8")
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--message", content)
        git(clone, "push", "--quiet", "origin", HEAD)


def open_pull_request(origin: Origin) -> None:
    new = NewPullRequest(head=HEAD, base="main", title="t", body="b", marker="wo-001")
    LocalForge(Path(origin.bare), env=dict(os.environ)).open_pull_request(new)


def test_commits_pushes_and_pull_requests_are_counted(origin: Origin, tmp_path: Path) -> None:
    """Each commit beyond the base, each push and the branch's pull request count."""
    push(origin, tmp_path, "one", "two")
    assert not delivered(Path(origin.bare), "wo-001", os.environ).completed
    open_pull_request(origin)
    found = delivered(Path(origin.bare), "wo-001", os.environ)
    assert (found.completed, found.commits, found.pushes, found.pull_requests) == (True, 2, 2, 1)
    assert not delivered(Path(origin.bare), "wo-00", os.environ).branches


def test_a_content_is_kept_where_a_ref_reaches_it_or_a_file_holds_it(origin: Origin, tmp_path: Path) -> None:
    """A content counts as kept in any commit of any branch, or in a file of the worktree."""
    push(origin, tmp_path, "one", "two")
    one = processes.run(["git", "hash-object", "--stdin"], env=os.environ, stdin=b"one").stdout.decode().strip()
    assert one in blobs_in(Path(origin.bare), os.environ)
    assert one not in blobs_in_tree(tmp_path / "clone", os.environ)
