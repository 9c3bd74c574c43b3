"""The folders of one work order on this host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from septet.git.engine.engine import Git

RECORDS: Final = "septet"
"""The folder in a vault that has, for each work order, a folder with Septet's own files."""

LOCK_SUFFIX: Final = "~lock"
"""The ending of the name of a lock file next to a workspace, which is held to open it; ids contain no `~`."""


class SizeLimits(NamedTuple):
    """The limits of a host for the work of an agent; 0 is no limit."""

    tree_bytes: int = 0
    """The most bytes that may be added to the worktree between two snapshots, or by a commit."""
    file_bytes: int = 0
    """The most bytes of one file in a commit, a push or a snapshot."""


NO_LIMITS: Final = SizeLimits()


@dataclass(frozen=True)
class Place:
    """The folders and limits of one work order; an agent can reach only the worktree."""

    order_id: str
    worktree: Path
    """`STATE/workspaces/<id>`: a clone in which the agent may write everything, `.git` included."""
    mirror: Path
    """`STATE/mirrors/<key>.git`: the host's bare mirror of the repository."""
    vault: Path
    """`STATE/vaults/<key>.git`: the vault with the snapshots of all workspaces of the repository."""
    origin: str
    """The URL or path from which Septet fetches, and to which it pushes unless `fork` is set."""
    base_branch: str
    base_sha: str
    env: Mapping[str, str] = field(default_factory=dict)
    tree_limit_bytes: int = 0
    """The most bytes that two snapshots may differ by, or a commit may add; 0: no limit."""
    file_limit_bytes: int = 0
    """The most bytes of one file in a commit, a push or a snapshot; 0: no limit."""
    fork: str = ""
    """The URL of the fork to which work is pushed; empty if it is pushed to the origin."""
    visitor: str = ""
    """The work order that uses a lane now, for the record of pushes; empty outside of lanes."""

    objects: Path = field(init=False)
    """The folder of the mirror's objects, which the worktree's repository uses by git's `alternates`."""
    records: Path = field(init=False)
    """The folder, in the vault, of Septet's own index and records for this work order."""

    def __post_init__(self) -> None:
        """Derive the folders that are inside other folders."""
        object.__setattr__(self, "objects", self.mirror / "objects")
        object.__setattr__(self, "records", self.vault / RECORDS / self.order_id)

    @property
    def destination(self) -> str:
        """The URL or path to which Septet pushes."""
        return self.fork or self.origin

    @property
    def git(self) -> Git:
        """The worktree's repository as the agent left it; its config must not be trusted."""
        return Git(self.worktree / ".git", self.worktree, self.env)


def mirror_lock(mirror: Path) -> Path:
    """Return the path of the lock that a mirror's writers hold."""
    return mirror.with_suffix(".lock")


def vault_lock(vault: Path) -> Path:
    """Return the path of the lock for creating a vault, joining its packs or deleting unneeded objects."""
    return vault.with_name(f"{vault.name}.lock")
