"""The states in which an agent may leave a worktree."""

from pathlib import Path

from fakes.repositories import git


def commit(tree: Path, **files: str) -> None:
    for name, content in files.items():
        (tree / name).write_text(content)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "agent")


def conflict(tree: Path, command: str) -> None:
    """Leave `command` (merge, rebase, cherry-pick) in the middle of a conflict."""
    git(tree, "checkout", "-q", "-b", "theirs")
    commit(tree, README="theirs\n", same="theirs\n")
    git(tree, "checkout", "-q", "-b", "ours", "HEAD~1")
    commit(tree, README="ours\n", same="ours\n")
    git(tree, command, "theirs", check=False)


def nest(tree: Path, folder: str) -> None:
    inner = tree / folder
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    commit(inner, inner="nested\n")
    (inner / "loose").write_text("untracked in the nested one\n")


def swap_file_and_folder(tree: Path) -> None:
    (tree / "README.md").unlink()
    (tree / "README.md").mkdir()
    (tree / "README.md/inside").write_text("x")
    (tree / "src/deep/er/one.txt").unlink()
    (tree / "src/deep/er").rmdir()
    (tree / "src/deep/er").write_text("a file now")
