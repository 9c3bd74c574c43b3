"""List the uncommitted changes of a person's own checkout."""

from pathlib import Path

from septet.errors import GitError
from septet.git.engine.engine import Git
from septet.settings import load_settings


def uncommitted_changes(path: Path) -> list[str]:
    """Return the files of a checkout that differ from its last commit; none if git cannot report them."""
    if not path.is_absolute() or not (path / ".git").is_dir():
        return []
    try:
        git = Git(path / ".git", path, load_settings().git_env)
        printed = git.run("status", "--porcelain", "-z", "--untracked-files=normal")
    except GitError:
        return []
    entries = printed.decode("utf-8", "replace").split("\0")
    names, at = [], 0
    while at < len(entries) and entries[at]:
        names.append(entries[at][3:])
        at += 2 if entries[at][0] in "RC" else 1  # the old name follows
    return names
