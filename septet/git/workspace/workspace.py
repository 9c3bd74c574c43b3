"""Open and record workspaces, which are clones that borrow their objects from the mirror."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from septet.errors import AlreadyRunningError, GitError, NotFoundError, WorkspaceError
from septet.git.engine.address import Address
from septet.git.engine.configuration import identity
from septet.git.engine.engine import Git, quote
from septet.git.engine.git_words import looks_damaged
from septet.git.engine.place import (
    LOCK_SUFFIX,
    Place,
    WorkspaceRecord,
    check_order_id,
    find_record,
    write_record,
)
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import Base, mend_mirror, refresh_mirror
from septet.git.worktree.view import borrowed_from, give_index, make_view, view_folder
from septet.state import StateDir
from septet.system.durable import hold_lock


@dataclass(frozen=True, slots=True)
class OrderStart:
    """A work order whose workspace must be opened."""

    order_id: str
    first_run_id: str
    base: str | None = None
    """The branch to start from; `None` for the default branch."""
    fork: str = ""
    """The URL of the fork to which work is pushed; empty for the origin."""


def record_for(start: OrderStart, address: Address, base: Base) -> WorkspaceRecord:
    """Return the record for a workspace that will be opened."""
    return WorkspaceRecord(
        fork=start.fork,
        order_id=start.order_id,
        first_run_id=start.first_run_id,
        origin=address.url,
        kind=address.kind,
        host=address.host,
        project=address.project,
        key=address.key,
        base_branch=base.branch,
        base_sha=base.sha,
        default_branch=base.default_branch,
    )


def copy_record(state: StateDir, source: str, order_id: str, first_run_id: str) -> None:
    """Record a work order's workspace with the same repository and commit as the workspace `source`.

    An existing record of the work order stays.

    Raises:
        NotFoundError: `source` is not on this host.
        WorkspaceError: The record of `source` cannot be read.
    """
    if find_record(state, order_id) is not None:
        return
    record = find_record(state, source)
    if record is None:
        raise NotFoundError(f"This host has no workspace of {source}.", remedy="Ask the host that opened it.")
    copy = record.model_copy(update={"order_id": order_id, "first_run_id": first_run_id})
    write_record(copy.place(state, {}), copy)


def place_for(state: StateDir, order_id: str, address: Address, base: Base, env: Mapping[str, str]) -> Place:
    """Return the folders of a work order on this host, even if its workspace was not opened.

    Raises:
        InvalidInputError: The id cannot be a folder's name.
    """
    check_order_id(order_id)
    return record_for(OrderStart(order_id, ""), address, base).place(state, env)


_CHECKOUT_SECONDS: Final = 3600.0


def open_workspace(
    state: StateDir, address: Address, start: OrderStart, *, env: Mapping[str, str], token: str | None = None
) -> Place:
    """Open a work order's workspace, and return its folders.

    Idempotent: the base commit is chosen and recorded once, for later attempts too. The clone is made next to its
    final place, and moved when it is complete.

    Raises:
        AlreadyRunningError: The id was used before.
        InvalidInputError: The id, the base or the repository cannot be used.
        NotFoundError: There is no such repository or branch.
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused, or git failed.
    """
    order_id, remote = start.order_id, Remote(address.url, env, token)
    check_order_id(order_id)
    with hold_lock(state.workspaces / f"{order_id}{LOCK_SUFFIX}"):
        record = find_record(state, order_id)
        if record is None:
            record = _begin(state, address, start, remote)
        elif record.first_run_id != start.first_run_id:
            raise AlreadyRunningError(f"The id {order_id} was used before.", remedy="Choose another id.")
        place = record.place(state, env)
        if not place.worktree.exists():
            clone = partial(_clone, place, record, state.workspaces / f"{order_id}~new")
            try:
                clone()
            except GitError as error:
                if not looks_damaged(error.message):
                    raise
                mend_mirror(place.mirror, remote, record.base_sha)
                clone()
        return place


def _begin(state: StateDir, address: Address, start: OrderStart, remote: Remote) -> WorkspaceRecord:
    """Choose the base commit, write the workspace's record to disk, and return it."""
    if (worktree := state.workspaces / start.order_id).exists():
        remedy = "Choose another id, or move the folder away."
        raise WorkspaceError(f"{worktree} exists already, and no record says who opened it.", remedy=remedy)
    base = refresh_mirror(state.mirrors / f"{address.key}.git", remote, start.base)
    record = record_for(start, address, base)
    write_record(record.place(state, remote.env), record)
    return record


def _clone(place: Place, record: WorkspaceRecord, clone: Path) -> None:
    """Make the clone like `git clone --shared`, with Septet's settings and without filters."""
    shutil.rmtree(clone, ignore_errors=True)  # of an attempt that died; no agent has used it
    make_view(place, fresh_config(place, clone))
    dot_git = clone / ".git"
    _write_config(dot_git, place)
    _write_refs(dot_git, place, record.default_branch)
    # Through the mirror, whose attributes switch filters off.
    mirror = Git(place.mirror, clone, place.env, index=view_folder(place) / "index")
    mirror.run("read-tree", "-m", "-u", place.base_sha, timeout_seconds=_CHECKOUT_SECONDS)
    give_index(place, dot_git)
    clone.rename(place.worktree)


def fresh_config(place: Place, folder: Path) -> str:
    """Create an empty repository in a new folder, and return its config, which depends on the file system."""
    folder.mkdir(mode=0o700)
    dot_git = folder / ".git"
    Git(dot_git, folder, place.env).init(branch=place.base_branch)
    return (dot_git / "config").read_text(encoding="utf-8")


def _write_config(dot_git: Path, place: Place) -> None:
    """Write the settings for the agent's git: the origin, the author and committer, and no background work.

    Author and committer are written because some agents hide the user's settings from git.
    """
    who = identity(Git(place.mirror, env=place.env))
    settings = {
        'remote "origin"': {"url": place.origin, "fetch": "+refs/heads/*:refs/remotes/origin/*"},
        f"branch {quote(place.base_branch)}": {"remote": "origin", "merge": f"refs/heads/{place.base_branch}"},
        "user": {"name": who.name, "email": who.email},
        **{role: facts for role, facts in who.roles.items() if facts},
        "gc": {"auto": "0"},
        "maintenance": {"auto": "false"},
    }
    with (dot_git / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        for section, values in settings.items():
            config.write(f"[{section}]\n")
            config.writelines(f"\t{key} = {quote(value)}\n" for key, value in values.items())


def _write_refs(dot_git: Path, place: Place, default_branch: str) -> None:
    """Write the clone's refs (base branch, the origin's branches, tags), and the path of the mirror's objects."""
    listing = Git(place.mirror, env=place.env).run(
        "for-each-ref", "--format=%(objectname) %(refname)", "refs/remotes/origin/", "refs/tags/"
    )
    base = f"{place.base_sha} refs/heads/{place.base_branch}\n".encode()
    (dot_git / "packed-refs").write_bytes(base + listing)
    alternates = dot_git / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    # Relative, so that a snapshot of the clone works under any state directory, on any host.
    alternates.write_bytes(borrowed_from(place.mirror) + b"\n")
    if default_branch:
        origin_head = dot_git / "refs" / "remotes" / "origin" / "HEAD"
        origin_head.parent.mkdir(parents=True)
        origin_head.write_text(f"ref: refs/remotes/origin/{default_branch}\n", encoding="utf-8")
