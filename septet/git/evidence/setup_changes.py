"""Keep what set-up changes in a new workspace out of the agents' work: refuse or exclude the changes."""

import re
from dataclasses import dataclass
from typing import Final

from septet.errors import SetupError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import current_head, look
from septet.git.vault.facts import FOLDER, Snapshot
from septet.git.vault.layout import read
from septet.git.vault.vault import vault_at
from septet.git.worktree.dot_git import read_file, refuse_foreign
from septet.git.worktree.view import borrowed_from, shown_path
from septet.system.durable import write_atomically
from septet.system.text import name_some

_MOST_EXCLUDED: Final = 1000
"""The most new files that can be excluded, because git compares each file with each line of `info/exclude`."""
_SPECIAL: Final = re.compile(rb"[\\*?\[ ]")
OF_SETUP: Final = "Of the repository's set-up, and no agent's work"


@dataclass(frozen=True, slots=True)
class SetupChanges:
    """The changes that git shows after a set-up, without ignored files."""

    changed: tuple[bytes, ...]
    """Files that set-up changed, removed or staged."""
    added: tuple[bytes, ...]
    """New files that git does not ignore."""


def setup_changes(place: Place, before: Snapshot, after: Snapshot) -> SetupChanges:
    """Return the changes between the snapshots before and after a set-up; `after` must be the present state.

    Raises:
        WorkspaceError: `.git` is damaged.
        GitError: git could not read the worktree.
    """
    vault = vault_at(place)
    old, new = read(vault, before.commit), read(vault, after.commit)
    files = {path: item for path, item in old.items() if item.in_tree and item.mode != FOLDER}
    changed = {
        path
        for path, item in files.items()
        if path not in new or (new[path].mode, new[path].sha) != (item.mode, item.sha)
    }
    fresh = [entry for entry in look(place).entries if entry.path in new and entry.path not in old]
    staged = {entry.path for entry in fresh if not entry.is_untracked}
    added = sorted(entry.path for entry in fresh if entry.is_untracked)
    return SetupChanges(tuple(sorted(changed | staged)), tuple(added))


_AGAIN: Final = (
    "Commit the correction to the base branch, then start a new work order: "
    "`septet retry` begins at the same commit."
)


def refuse_changes(place: Place, changes: SetupChanges, head_before: str) -> None:
    """Refuse a set-up that changed files of the repository or HEAD, or left too many new files.

    Raises:
        SetupError: Set-up made a change that is refused; the message names the change.
    """
    if current_head(place).sha != head_before:
        raise SetupError(
            "Set-up has moved HEAD to another commit.",
            remedy=f"Let set-up leave git's commits as they are. {_AGAIN}",
        )
    if changes.changed:
        raise SetupError(
            f"Set-up has changed files of the repository: {_names(changes.changed)}. They would be committed as "
            "the agent's work.",
            remedy="Use a command that leaves them as they are, such as `npm ci` instead of `npm install`, or "
            f"undo it in a last command, such as `git checkout -- FILE`. {_AGAIN}",
        )
    if len(changes.added) > _MOST_EXCLUDED or any(b"\n" in path for path in changes.added):
        raise SetupError(
            f"Set-up leaves {len(changes.added)} files that git does not ignore: {_names(changes.added)}. Up to "
            f"{_MOST_EXCLUDED} can be kept out of the agent's work.",
            remedy=f"Name them in the repository's .gitignore. {_AGAIN}",
        )


def exclude_files(place: Place, paths: tuple[bytes, ...], reason: str) -> None:
    """Keep new files of a workspace out of commits; the files stay on disk.

    Each file is excluded by name, so an agent's file next to it is still work. Earlier exclusions stay. Call
    this only with the writer's lock held.

    Args:
        reason: The comment above the new lines.

    Raises:
        WorkspaceError: `.git` is damaged.
    """
    dot_git = place.worktree / ".git"
    refuse_foreign(dot_git, borrowed_from(place.mirror))
    (dot_git / "info").mkdir(exist_ok=True)
    known = read_file(dot_git / "info" / "exclude") or b""
    lines = [b"/" + _SPECIAL.sub(rb"\\\g<0>", path) for path in paths]
    new = [line for line in lines if line not in known.splitlines()]
    if new:
        ends = known if known.endswith(b"\n") or not known else known + b"\n"
        content = b"\n".join((ends + b"# " + reason.encode() + b":", *new, b""))
        write_atomically(dot_git / "info" / "exclude", content)


def _names(paths: tuple[bytes, ...]) -> str:
    return name_some([shown_path(path) for path in paths], 5)
