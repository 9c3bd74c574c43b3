"""`septet rescue`: list the snapshots of this host, and restore one."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.text import Text

from clients.cli import tables
from clients.cli.reply import Reply, reply
from clients.kept_on_disk import snapshot_named, snapshots_of, told
from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import busy
from septet.contracts.replies import KeptSnapshot, RescuesReply
from septet.errors import UsageError
from septet.git.snapshots.restore import restore as restore_snapshot
from septet.settings import load_settings
from septet.state import StateDir

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def list_(order_id: str | None, *, everything: bool, as_json: bool) -> None:
    """List the rescues on this host, oldest first; with `everything` the checkpoints too."""

    async def work() -> Reply:
        settings = load_settings()
        kept = snapshots_of(StateDir(settings.state_dir), settings.git_env, order_id, everything=everything)
        show = (lambda: _show(kept)) if kept else lambda: _say_none(order_id, everything=everything)
        return Reply.of(RescuesReply(rescues=kept), show)

    reply(work, as_json=as_json)


def restore(name: str, to: Path, *, as_json: bool) -> None:
    """Restore a snapshot, bit for bit, into a new or empty folder; not where an agent works."""
    target = to.expanduser().absolute()

    async def work() -> Reply:
        settings = load_settings()
        state = StateDir(settings.state_dir)
        vault, snapshot = snapshot_named(state, settings.git_env, name)
        _check_free(state, target)
        with _writing_in(state, target):
            restore_snapshot(vault, snapshot, target)
        row = {**told(state, snapshot).model_dump(mode="json"), "restored_to": str(target)}
        return Reply({"rescue": row}, lambda: tables.console().print(Text(f"{name} is in {target}.")))

    reply(work, as_json=as_json)


def _check_free(state: StateDir, target: Path) -> None:
    """See that a folder can be what a snapshot is restored to.

    Raises:
        UsageError: It is there and is no empty folder, or lies among what Septet keeps.
    """
    kept, below = state.root.resolve(), target.resolve()
    if below.is_relative_to(kept) and not below.is_relative_to(state.workspaces.resolve()):
        raise UsageError(f"--to {target}: Septet keeps its own files there.", remedy="Name a folder elsewhere.")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"--to {target}: it is there, and is no folder.", remedy="Name a new folder.")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"--to {target}: it is not empty.", remedy="Name a new folder.")


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


def _show(kept: Sequence[KeptSnapshot]) -> None:
    out = tables.console()
    for one in kept:
        age = f"{_shown(one.age_seconds)} ago"
        line = f"{one.snapshot}  {one.taken_at}  {age}  {one.size_bytes:,} bytes  {one.reason}"
        out.print(Text(line), soft_wrap=True)


def _say_none(order_id: str | None, *, everything: bool) -> None:
    of = f" of {order_id}" if order_id else ""
    what, more = ("snapshots", "") if everything else ("rescues", " Checkpoints are shown with --all.")
    typer.echo(f"This host has no {what}{of}.{more}")


def _shown(age_seconds: int) -> str:
    if age_seconds >= _DAY:
        return f"{age_seconds // _DAY} d"
    if age_seconds >= _HOUR:
        return f"{age_seconds // _HOUR} h"
    return f"{max(age_seconds, 0) // _MINUTE} min"
