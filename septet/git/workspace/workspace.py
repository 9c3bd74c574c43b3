"""Open a workspace: a clone for one work order that borrows its objects from the mirror."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from septet.errors import AlreadyRunningError, GitError, WorkspaceError
from septet.git.engine.address import Address
from septet.git.engine.engine import Git
from septet.git.engine.git_words import looks_damaged
from septet.git.engine.identity import identity
from septet.git.engine.place import LOCK_SUFFIX, Place, borrowed_from
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import mend_mirror, refresh_mirror
from septet.git.workspace.record import (
    OrderStart,
    WorkspaceRecord,
    check_order_id,
    find_record,
    record_for,
    write_record,
)
from septet.git.worktree.view import give_index, make_view, view_folder
from septet.state import StateDir
from septet.system.locks import hold_lock

_CHECKOUT_SECONDS: Final = 3600.0
_REFS: Final = ("refs/remotes/origin/", "refs/tags/")


def open_workspace(
    state: StateDir, address: Address, start: OrderStart, *, env: Mapping[str, str], token: str | None = None
) -> Place:
    """Open the workspace of a work order and return its place.

    Idempotent: the base commit is chosen and recorded once, and an attempt after a dead attempt continues from the
    record. An unfinished clone stays next to its place, so that a workspace is never half there.

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
    """Choose the base commit and record it."""
    if (worktree := state.workspaces / start.order_id).exists():
        remedy = "Choose another id, or move the folder away."
        raise WorkspaceError(f"{worktree} exists already, and no record says who opened it.", remedy=remedy)
    base = refresh_mirror(state.mirrors / f"{address.key}.git", remote, start.base)
    record = record_for(start, address, base)
    write_record(record.place(state, remote.env), record)
    return record


def _clone(place: Place, record: WorkspaceRecord, clone: Path) -> None:
    """Clone like `git clone --shared`, with the engine's settings and without running a filter."""
    shutil.rmtree(clone, ignore_errors=True)  # of an attempt that died; no agent has used it
    make_view(place, fresh_config(place, clone))
    dot_git = clone / ".git"
    _write_config(dot_git, place)
    _write_refs(dot_git, place, record.default_branch)
    _check_out(clone, place)
    give_index(place, dot_git)
    clone.rename(place.worktree)


def fresh_config(place: Place, folder: Path) -> str:
    """Make `folder` an empty repository, and return its config, in which git describes the file system."""
    folder.mkdir(mode=0o700)
    dot_git = folder / ".git"
    Git(dot_git, folder, place.env).init(branch=place.base_branch)
    return (dot_git / "config").read_text(encoding="utf-8")


def _check_out(clone: Path, place: Place) -> None:
    # Through the mirror, whose attributes switch filters off.
    mirror = Git(place.mirror, clone, place.env, index=view_folder(place) / "index")
    mirror.run("read-tree", "-m", "-u", place.base_sha, timeout_seconds=_CHECKOUT_SECONDS)


def _write_config(dot_git: Path, place: Place) -> None:
    """Write the settings that the agent's git needs: the origin, the identity, and no background work.

    The identity is written because some agents hide the user's own settings from git.
    """
    who = identity(Git(place.mirror, env=place.env))
    settings = {
        'remote "origin"': {"url": place.origin, "fetch": "+refs/heads/*:refs/remotes/origin/*"},
        f"branch {_quote(place.base_branch)}": {"remote": "origin", "merge": f"refs/heads/{place.base_branch}"},
        "user": {"name": who.name, "email": who.email},
        **{role: facts for role, facts in who.roles.items() if facts},
        "gc": {"auto": "0"},
        "maintenance": {"auto": "false"},
    }
    with (dot_git / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        for section, values in settings.items():
            config.write(f"[{section}]\n")
            config.writelines(f"\t{key} = {_quote(value)}\n" for key, value in values.items())


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_refs(dot_git: Path, place: Place, default_branch: str) -> None:
    """Write the clone's base branch, and the origin's present branches and tags."""
    listing = Git(place.mirror, env=place.env).run("for-each-ref", "--format=%(objectname) %(refname)", *_REFS)
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
