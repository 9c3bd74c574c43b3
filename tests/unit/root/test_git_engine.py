from pathlib import Path

import pytest
from fakes.repositories import git, git_env, make_origin
from fakes.shell_programs import write_program

from septet.errors import GitError
from septet.git.engine.engine import Git


@pytest.fixture
def tree(tmp_path: Path) -> Git:
    origin = make_origin(tmp_path / "origins")
    origin.push({"a.txt": "a\n"})
    return Git(origin.checkout / ".git", origin.checkout, git_env(tmp_path / "home"))


def test_a_failure_names_command_place_and_reason(tree: Git) -> None:
    """An unexpected exit code causes an error with the command, the folder and git's words."""
    with pytest.raises(GitError) as failed:
        tree.run("rev-parse", "--verify", "no-such-thing")
    assert "git rev-parse" in failed.value.message
    assert str(tree.git_dir) in failed.value.message
    assert "Needed a single revision" in failed.value.message


def test_a_worktree_without_its_repository_is_not_the_enclosing_one(tree: Git, tmp_path: Path) -> None:
    """A worktree without `.git` causes an error, even inside another repository."""
    git(tmp_path, "init", "-q")
    tree.git_dir.rename(tmp_path / "gone")
    with pytest.raises(GitError, match="not a git repository"):
        tree.run("status")


def test_no_hook_of_the_repository_runs(tree: Git, tmp_path: Path) -> None:
    """The engine's git runs no hook of `.git/hooks`, also if the repository's config names that folder."""
    hooks = tree.git_dir / "hooks"
    for name in ("post-index-change", "reference-transaction"):
        write_program(hooks / name, f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    with (tree.git_dir / "config").open("a") as config:
        config.write(f"[core]\n\thooksPath = {hooks}\n")
    tree.run("read-tree", "HEAD")
    tree.run("update-ref", "refs/heads/other", "HEAD")
    assert not (tmp_path / "ran").exists()


def test_a_path_is_no_pattern(tree: Git) -> None:
    """A file name with a star names only that file."""
    assert tree.work_tree is not None
    (tree.work_tree / "*").write_text("star\n")
    (tree.work_tree / "b.txt").write_text("b\n")
    tree.run("add", "--", "*")
    assert tree.text("diff", "--cached", "--name-only") == "*"


def test_nobody_is_asked_at_a_prompt(tree: Git) -> None:
    """Neither git nor ssh prompts for input, and the worker's own ssh command stays."""
    env = tree.run("-c", "alias.e=!env", "e").decode()
    assert "GIT_TERMINAL_PROMPT=0" in env
    assert "GIT_SSH_COMMAND=ssh -oBatchMode=yes" in env
    assert "GIT_SSH_COMMAND=mine" in tree.with_env(GIT_SSH_COMMAND="mine").run("-c", "alias.e=!env", "e").decode()


def test_a_command_that_hangs_is_killed(tree: Git) -> None:
    """A command that exceeds its time is killed, and the remedy names `septet retry`."""
    with pytest.raises(GitError, match="took longer") as failed:
        tree.run("-c", "alias.hang=!sleep 60", "hang", timeout_seconds=0.2)
    assert "septet retry" in failed.value.remedy


def test_without_git_the_remedy_is_to_install_it(tree: Git) -> None:
    """The remedy for a git that cannot start is to install git."""
    assert tree.work_tree is not None
    with pytest.raises(GitError, match="could not be started") as failed:
        Git(tree.git_dir, tree.work_tree / "no folder", tree.env).run("status")
    assert "Install git" in failed.value.remedy
