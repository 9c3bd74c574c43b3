"""The record of a work order's workspace, in the engine's records on its host."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from septet.contracts.names import ORDER_ID
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError, NotFoundError, WorkspaceError
from septet.git.engine.address import Address
from septet.git.engine.place import RECORDS, Place
from septet.git.workspace.mirror import Base
from septet.state import StateDir
from septet.system.durable import write_durably

_FILE: Final = "workspace.json"


class WorkspaceRecord(Wire):
    """The facts with which a workspace was opened."""

    order_id: str
    first_run_id: str
    """The first Temporal run of the work order: another run means that the id was used before."""
    origin: str
    kind: Literal["local", "remote"]
    host: str
    project: str
    key: str
    base_branch: str
    base_sha: str
    default_branch: str
    fork: str = ""
    """The URL of the fork that the work is pushed to; empty if that is the origin."""

    def place(self, state: StateDir, env: Mapping[str, str]) -> Place:
        """Return the places of the work order's files."""
        return Place(
            order_id=self.order_id,
            worktree=state.workspaces / self.order_id,
            mirror=state.mirrors / f"{self.key}.git",
            vault=state.vaults / f"{self.key}.git",
            origin=self.origin,
            base_branch=self.base_branch,
            base_sha=self.base_sha,
            env=env,
            fork=self.fork,
        )


@dataclass(frozen=True, slots=True)
class OrderStart:
    """A work order whose workspace must be opened."""

    order_id: str
    first_run_id: str
    """The first Temporal run of this work order."""
    base: str | None = None
    """The branch to start from; `None` for the default branch."""
    fork: str = ""
    """The URL of the fork that the work is pushed to; empty for the origin."""


def record_for(start: OrderStart, address: Address, base: Base) -> WorkspaceRecord:
    """Return the record of a workspace that is about to be opened."""
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
    """Copy the record of another workspace on this host: the same repository and the same commit.

    A work order that has a record already keeps that record.

    Raises:
        NotFoundError: The other workspace is not on this host.
        WorkspaceError: Its record cannot be read.
    """
    if find_record(state, order_id) is not None:
        return
    record = find_record(state, source)
    if record is None:
        raise NotFoundError(f"This host has no workspace of {source}.", remedy="Ask the host that opened it.")
    copy = record.model_copy(update={"order_id": order_id, "first_run_id": first_run_id})
    write_record(copy.place(state, {}), copy)


def place_for(state: StateDir, order_id: str, address: Address, base: Base, env: Mapping[str, str]) -> Place:
    """Return the place of a work order on this host, opened or not.

    Raises:
        InvalidInputError: The id cannot be a folder's name.
    """
    check_order_id(order_id)
    return record_for(OrderStart(order_id, ""), address, base).place(state, env)


def find_place(state: StateDir, order_id: str, env: Mapping[str, str]) -> Place:
    """Return the place of a work order whose workspace was opened on this host.

    Raises:
        NotFoundError: This host has no such workspace.
        WorkspaceError: Its record cannot be read.
    """
    record = find_record(state, order_id)
    if record is None:
        raise NotFoundError(f"This host has no workspace of {order_id}.", remedy="Ask the host that opened it.")
    return record.place(state, env)


def find_record(state: StateDir, order_id: str) -> WorkspaceRecord | None:
    """Return the record of a work order on this host, in any repository; `None` without a record.

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
    """Return the record of the workspace at `place`.

    Raises:
        WorkspaceError: The record is missing or cannot be read.
    """
    return _read(place.records / _FILE)


def write_record(place: Place, record: WorkspaceRecord) -> None:
    """Write the record, whole or not at all."""
    place.records.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(place.records / _FILE, record.model_dump_json(indent=2).encode())


def check_order_id(order_id: str) -> None:
    """Refuse an id that cannot be a folder's name.

    Raises:
        InvalidInputError: The id is not 1 to 64 of `A-Za-z0-9._-`, or is `.` or `..`.
    """
    if not ORDER_ID.fullmatch(order_id):
        raise InvalidInputError(f"{order_id!r} is not a work order id.", remedy="Use 1 to 64 of A-Z a-z 0-9 . _ -")


def _read(path: Path) -> WorkspaceRecord:
    try:
        return WorkspaceRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        remedy = "Use another id; the worktree and its snapshots stay."
        raise WorkspaceError(f"The record {path} of a workspace cannot be read.", remedy=remedy) from error
