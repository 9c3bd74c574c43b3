"""The folders of one work order on this host."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git

RECORDS: Final = "septet"
"""The name of the folder in a vault that has a folder with Septet's own files for each work order."""

LOCK_SUFFIX: Final = "~lock"
"""The suffix of the lock file, next to a workspace, for opening the workspace; ids contain no `~`."""


@dataclass(frozen=True)
class Place:
    """The folders and limits of one work order; of the folders, the agent can reach only the worktree."""

    order_id: str
    worktree: Path
    """`STATE/workspaces/<id>`: a separate clone; the agent may write everything in it, `.git` included."""
    mirror: Path
    """`STATE/mirrors/<key>.git`: the host's bare mirror of the repository."""
    vault: Path
    """`STATE/vaults/<key>.git`: the vault with the snapshots of all workspaces of the repository."""
    origin: str
    """The literal URL or path that Septet fetches from, and pushes to unless `fork` is set."""
    base_branch: str
    base_sha: str
    env: Mapping[str, str] = field(default_factory=dict)
    tree_limit_bytes: int = 0
    """The most bytes that may be added to the worktree between two snapshots, or by a commit; 0 is no limit."""
    file_limit_bytes: int = 0
    """The most bytes of one file in a commit, a push or a snapshot; 0 is no limit."""
    fork: str = ""
    """The literal URL of the fork that the work is pushed to; empty if that is the origin."""
    visitor: str = ""
    """The id of the work order that uses a lane now; empty outside of lanes. Pushes are recorded for this id."""

    @property
    def destination(self) -> str:
        """The literal URL or path that Septet pushes to."""
        return self.fork or self.origin

    @cached_property
    def objects(self) -> Path:
        """The folder of the mirror's objects, which the worktree's repository uses by git's `alternates`."""
        return self.mirror / "objects"

    @cached_property
    def records(self) -> Path:
        """The folder, in the vault, of Septet's own index and records for this work order."""
        return self.vault / RECORDS / self.order_id

    @property
    def git(self) -> Git:
        """The worktree's repository as the agent has left it, with a config that must not be trusted."""
        return Git(self.worktree / ".git", self.worktree, self.env)


def mirror_lock(mirror: Path) -> Path:
    """Return the path of the lock of a mirror's writers."""
    return mirror.with_suffix(".lock")


def vault_lock(vault: Path) -> Path:
    """Return the path of the lock for making a vault, joining its packs or dropping unneeded objects."""
    return vault.with_name(f"{vault.name}.lock")


def borrowed_from(mirror: Path) -> bytes:
    """Return the path of the mirror's objects, relative to a worktree's `.git/objects`, for git's `alternates`."""
    return b"../../../../" + os.fsencode(Path(mirror.parent.name, mirror.name, "objects"))
