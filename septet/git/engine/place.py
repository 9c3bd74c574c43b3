"""Where one work order's bytes lie on this host."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git

RECORDS: Final = "septet"
"""In a vault: the engine's own files, in a folder for each work order."""

LOCK_SUFFIX: Final = "~lock"
"""Of the lock that a workspace is opened under, beside it; `~` is no character of an id."""


@dataclass(frozen=True)
class Place:
    """The folders of one work order: the worktree is the agent's, all else is out of its reach."""

    order_id: str
    worktree: Path
    """`STATE/workspaces/<id>`: a clone of its own; the agent may write everything in it, `.git` included."""
    mirror: Path
    """`STATE/mirrors/<key>.git`: the host's bare mirror of the repository."""
    vault: Path
    """`STATE/vaults/<key>.git`: the bare repository of this repository's snapshots."""
    origin: str
    """The literal URL or path that the engine fetches from, and pushes to where there is no fork."""
    base_branch: str
    base_sha: str
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment of engine git."""
    tree_limit_bytes: int = 0
    """What may be added to the worktree between two snapshots, and a commit unfold to; 0 is no limit."""
    file_limit_bytes: int = 0
    """How large one file may be that is committed, pushed or kept in a snapshot; 0 is no limit."""
    fork: str = ""
    """The literal URL of the fork that work is pushed to; empty where it is the origin itself."""
    visitor: str = ""
    """The work order that a lane serves now, which has its own pushes there; empty outside of lanes."""

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
        """The engine's own files of this work order, beside the vault's objects: index, records."""
        return self.vault / RECORDS / self.order_id

    @property
    def git(self) -> Git:
        """The worktree's repository, as the agent left it. Its config is not to be trusted."""
        return Git(self.worktree / ".git", self.worktree, self.env)


def mirror_lock(mirror: Path) -> Path:
    """Return the lock of those that write in a mirror."""
    return mirror.with_suffix(".lock")


def vault_lock(vault: Path) -> Path:
    """Return the lock of those that make a vault, join its packs or drop what is forgotten."""
    return vault.with_name(f"{vault.name}.lock")


def borrowed_from(mirror: Path) -> bytes:
    """Return the mirror's objects as a worktree names them: relative to `workspaces/<id>/.git/objects`."""
    return b"../../../../" + os.fsencode(Path(mirror.parent.name, mirror.name, "objects"))
