"""The folders of one work order on this host, and the record by which they are found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import ValidationError

from septet.contracts.names import ORDER_ID
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError, NotFoundError, WorkspaceError
from septet.git.engine.engine import Git
from septet.state import StateDir
from septet.system.durable import write_durably

RECORDS: Final = "septet"
"""The folder in a vault that has, for each work order, a folder with Septet's own files."""

_FILE: Final = "workspace.json"

LOCK_SUFFIX: Final = "~lock"
"""The ending of a lock file's name; the lock is held while a workspace is opened. Ids contain no `~`."""


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


class WorkspaceRecord(Wire):
    """What is recorded about a workspace when it is opened."""

    order_id: str
    first_run_id: str
    """The work order's first Temporal run, which shows whether the id was used before."""
    origin: str
    kind: Literal["local", "remote"]
    host: str
    project: str
    key: str
    base_branch: str
    base_sha: str
    default_branch: str
    fork: str = ""
    """The URL of the fork to which work is pushed; empty if it is pushed to the origin."""

    def place(
        self, state: StateDir, env: Mapping[str, str], visitor: str = "", limits: SizeLimits = NO_LIMITS
    ) -> Place:
        """Return the work order's folders."""
        return Place(
            order_id=self.order_id,
            worktree=state.workspaces / self.order_id,
            mirror=state.mirrors / f"{self.key}.git",
            vault=state.vaults / f"{self.key}.git",
            origin=self.origin,
            base_branch=self.base_branch,
            base_sha=self.base_sha,
            env=env,
            tree_limit_bytes=limits.tree_bytes,
            file_limit_bytes=limits.file_bytes,
            fork=self.fork,
            visitor=visitor,
        )


def find_place(
    state: StateDir, order_id: str, env: Mapping[str, str], visitor: str = "", limits: SizeLimits = NO_LIMITS
) -> Place:
    """Return the folders of a workspace that was opened on this host; in a lane, `visitor` is the work order.

    Raises:
        NotFoundError: This host has no such workspace.
        WorkspaceError: The workspace's record cannot be read.
    """
    record = find_record(state, order_id)
    if record is None:
        raise NotFoundError(f"This host has no workspace of {order_id}.", remedy="Ask the host that opened it.")
    return record.place(state, env, visitor, limits)


def find_record(state: StateDir, order_id: str) -> WorkspaceRecord | None:
    """Return a work order's record on this host; `None` if it has none.

    Raises:
        WorkspaceError: The record cannot be read.
    """
    check_order_id(order_id)
    if not state.vaults.is_dir():
        return None
    paths = (vault / RECORDS / order_id / _FILE for vault in state.vaults.iterdir())
    path = next((path for path in paths if path.exists()), None)
    return None if path is None else _read(path)


def record_of(place: Place) -> WorkspaceRecord:
    """Return the record of a workspace.

    Raises:
        WorkspaceError: The record is missing or cannot be read.
    """
    return _read(place.records / _FILE)


def write_record(place: Place, record: WorkspaceRecord) -> None:
    """Write a workspace's record to disk in one step."""
    place.records.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(place.records / _FILE, record.model_dump_json(indent=2).encode())


def check_order_id(order_id: str) -> None:
    """Raise if an id cannot be a folder's name.

    Raises:
        InvalidInputError: The id is not 1 to 64 characters of `A-Za-z0-9._-`, or is `.` or `..`.
    """
    if not ORDER_ID.fullmatch(order_id):
        raise InvalidInputError(f"{order_id!r} is not a work order id.", remedy="Use 1 to 64 of A-Z a-z 0-9 . _ -")


def _read(path: Path) -> WorkspaceRecord:
    try:
        return WorkspaceRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        remedy = "Use another id; the worktree and its snapshots stay."
        raise WorkspaceError(f"The record {path} of a workspace cannot be read.", remedy=remedy) from error


def mirror_lock(mirror: Path) -> Path:
    """Return the path of the lock that a mirror's writers hold."""
    return mirror.with_suffix(".lock")


def vault_lock(vault: Path) -> Path:
    """Return the path of the lock for creating a vault, joining its packs or deleting unneeded objects."""
    return vault.with_name(f"{vault.name}.lock")
