"""The places of one work order's files on this host."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git

RECORDS: Final = "septet"
"""The folder in a vault with the engine's own files: a folder for each work order."""

LOCK_SUFFIX: Final = "~lock"
"""The suffix of the lock for opening a workspace, next to the workspace; `~` is not a character of an id."""


@dataclass(frozen=True)
class Place:
    """The folders of one work order; the agent can reach only the worktree."""

    order_id: str
    worktree: Path
    """`STATE/workspaces/<id>`: a separate clone; the agent may write everything in it, `.git` included."""
    mirror: Path
    """`STATE/mirrors/<key>.git`: the host's bare mirror of the repository."""
    vault: Path
    """`STATE/vaults/<key>.git`: the bare repository of this repository's snapshots."""
    origin: str
    """The literal URL or path that the engine fetches from, and pushes to unless `fork` is set."""
    base_branch: str
    base_sha: str
    env: Mapping[str, str] = field(default_factory=dict)
    tree_limit_bytes: int = 0
    """The most bytes that may be added to the worktree between two snapshots, or by a commit; 0 is no limit."""
    file_limit_bytes: int = 0
    """The most bytes of one file that is committed, pushed or kept in a snapshot; 0 is no limit."""
    fork: str = ""
    """The literal URL of the fork that the work is pushed to; empty if that is the origin."""
    visitor: str = ""
    """The work order that a lane serves now, which has its own pushes; empty outside of lanes."""

    @property
    def destination(self) -> str:
        """The literal URL or path that the engine pushes to."""
        return self.fork or self.origin

    @cached_property
    def objects(self) -> Path:
        """The folder of the mirror's objects, which the worktree borrows."""
        return self.mirror / "objects"

    @cached_property
    def records(self) -> Path:
        """The engine's own files of this work order, next to the vault's objects: index, records."""
        return self.vault / RECORDS / self.order_id

    @property
    def git(self) -> Git:
        """The worktree's repository, as the agent left it. The repository's config is not trusted."""
        return Git(self.worktree / ".git", self.worktree, self.env)


def mirror_lock(mirror: Path) -> Path:
    """Return the lock of a mirror's writers."""
    return mirror.with_suffix(".lock")


def vault_lock(vault: Path) -> Path:
    """Return the lock of the processes that make a vault, join its packs or drop forgotten objects."""
    return vault.with_name(f"{vault.name}.lock")


def borrowed_from(mirror: Path) -> bytes:
    """Return the path of the mirror's objects as a worktree stores it: relative to `.git/objects`."""
    return b"../../../../" + os.fsencode(Path(mirror.parent.name, mirror.name, "objects"))
