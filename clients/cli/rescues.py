"""`septet rescue`: list the snapshots of this host, and restore one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer
from rich.text import Text

from clients.cli import tables
from clients.cli.reply import Reply, reply
from septet.agents.lease import busy
from septet.agents.runs import Runs
from septet.errors import NotFoundError
from septet.git.engine import Git
from septet.git.snapshots.restore import restore as restore_snapshot
from septet.git.snapshots.snapshot import Snapshot
from septet.git.snapshots.vault import find, list_snapshots, vaults_in
from septet.settings import Settings, load_settings
from septet.state import StateDir


def list_(order_id: str | None, *, everything: bool, as_json: bool) -> None:
    """List the rescues on this host, oldest first; with `everything` the checkpoints too."""

    async def work() -> Reply:
        settings = load_settings()
        found = [snapshot for vault in _vaults(settings) for snapshot in list_snapshots(vault, order_id)]
        found = [snapshot for snapshot in found if everything or snapshot.kind == "rescue"]
        found.sort(key=lambda snapshot: snapshot.taken_at)
        rows = [_row(snapshot) for snapshot in found]
        return Reply(
            {"rescues": rows}, lambda: _show(found) if found else _say_none(order_id, everything=everything)
        )

    reply(work, as_json=as_json)


def restore(name: str, to: Path, *, as_json: bool) -> None:
    """Restore a snapshot, bit for bit, into a new or empty folder; not where an agent works."""
    target = to.expanduser().absolute()

    async def work() -> Reply:
        settings = load_settings()
        vault, snapshot = _find(settings, name)
        with _writing_in(StateDir(settings.state_dir), target):
            restore_snapshot(vault, snapshot, target)
        row = {**_row(snapshot), "restored_to": str(target)}
        return Reply({"rescue": row}, lambda: tables.console().print(Text(f"{name} is in {target}.")))

    reply(work, as_json=as_json)


@contextmanager
def _writing_in(state: StateDir, target: Path) -> Iterator[None]:
    """Be the one writer of a work order for as long as the block lasts, where the target lies in its workspace.

    Raises:
        WorkspaceBusyError: An agent works there, or an attempt of its step writes.
    """
    below, inside = target.resolve(), state.workspaces.resolve()
    if not below.is_relative_to(inside) or below == inside:
        yield
        return
    order_id, runs = below.relative_to(inside).parts[0], Runs(state.runs)
    lock = runs.lock_writer(order_id)
    if lock is None:
        raise busy(runs, order_id)
    try:
        yield
    finally:
        os.close(lock)


def _find(settings: Settings, name: str) -> tuple[Git, Snapshot]:
    for vault in _vaults(settings):
        try:
            return vault, find(vault, name)
        except NotFoundError:
            continue
    raise NotFoundError(f"There is no snapshot {name} on this host.", remedy="See `septet rescue list`.")


def _vaults(settings: Settings) -> list[Git]:
    return vaults_in(StateDir(settings.state_dir).vaults, settings.git_env)


def _row(snapshot: Snapshot) -> dict[str, object]:
    return {
        "snapshot": snapshot.name,
        "work_order_id": snapshot.order_id,
        "kind": snapshot.kind,
        "reason": snapshot.reason,
        "step": snapshot.step,
        "taken_at": snapshot.taken_at,
        "age_seconds": round(_age(snapshot).total_seconds()),
        "size_bytes": snapshot.size_bytes,
        "commit": snapshot.commit,
        "left_out": [item.path for item in snapshot.left_out],
    }


def _show(found: list[Snapshot]) -> None:
    out = tables.console()
    for snapshot in found:
        size = f"{snapshot.size_bytes:,} bytes"
        line = f"{snapshot.name}  {snapshot.taken_at}  {_shown(_age(snapshot))} ago  {size}  {snapshot.reason}"
        out.print(Text(line), soft_wrap=True)


def _say_none(order_id: str | None, *, everything: bool) -> None:
    of = f" of {order_id}" if order_id else ""
    what, more = ("snapshots", "") if everything else ("rescues", " Checkpoints are shown with --all.")
    typer.echo(f"This host has no {what}{of}.{more}")


def _age(snapshot: Snapshot) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(snapshot.taken_at)


def _shown(age: timedelta) -> str:
    if age >= timedelta(days=1):
        return f"{age.days} d"
    minutes = max(int(age.total_seconds()) // 60, 0)
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004 -- an hour's minutes
