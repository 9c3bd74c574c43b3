"""`septet rescue`: list the rescues, or all snapshots, of this host, and restore a snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from clients.cli.decide.options import RescuesOptions, RestoreOptions
from clients.cli.terminal.console import console
from clients.cli.terminal.output import say
from clients.cli.terminal.reply import CommandReply
from clients.disk.rescues import kept_snapshot, snapshot_named, snapshots_of
from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import busy_error
from septet.contracts.replies import RescuesReply
from septet.errors import NotFoundError, UsageError
from septet.git.snapshots.restore import restore as restore_snapshot
from septet.settings import load_settings
from septet.state import StateDir
from septet.system.durable import close_after


async def list_rescues(options: RescuesOptions) -> CommandReply:
    """List the rescues on this host."""
    settings = load_settings()
    state = StateDir(settings.state_dir)
    snapshots = snapshots_of(state, settings.git_env, options.order_id, everything=options.everything)
    if options.order_id and not (
        snapshots or snapshots_of(state, settings.git_env, options.order_id, everything=True)
    ):
        raise NotFoundError(
            f"This host keeps nothing of {options.order_id}.",
            remedy="Ask where its worker runs, with the worker's SEPTET_STATE_DIR. See all of this host: "
            "septet rescue list",
        )

    def show() -> None:
        for snapshot in snapshots:
            age, reason = _age(snapshot.age_seconds), snapshot.reason.partition("\n")[0].removesuffix(":")
            line = f"{snapshot.snapshot}  {age} ago  {snapshot.size_bytes:,} bytes  {reason}"
            console().print(Text(line), soft_wrap=True)
        if not snapshots:
            owner = f" of {options.order_id}" if options.order_id else ""
            none = f"This host has no {'snapshots' if options.everything else 'rescues'}{owner}."
            say(none if options.everything else f"{none} Checkpoints are shown with --all.")

    return CommandReply.from_reply(RescuesReply(rescues=snapshots), show)


async def restore(options: RestoreOptions) -> CommandReply:
    """Restore a snapshot, bit for bit, to a new folder. Its `.git` has no hooks or settings of an agent."""
    target = options.to.expanduser().absolute()
    settings = load_settings()
    state = StateDir(settings.state_dir)
    vault, stored = snapshot_named(state, settings.git_env, options.snapshot)
    _check_target(state, target)
    with _write_lock(state, target):
        restore_snapshot(vault, stored, target)
    row = {**kept_snapshot(state, stored).model_dump(mode="json"), "restored_to": str(target)}
    return CommandReply({"rescue": row}, lambda: say(f"{options.snapshot} is in {target}."))


def _check_target(state: StateDir, target: Path) -> None:
    """Refuse a folder to which no snapshot can be restored, for example because it is not empty."""
    root, below = state.root.resolve(), target.resolve()
    if below.is_relative_to(root) and not below.is_relative_to(state.workspaces.resolve()):
        raise UsageError(f"--to {target}: Septet keeps its own files there.", remedy="Name a folder elsewhere.")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"--to {target}: it exists, and is not a folder.", remedy="Name a new folder.")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"--to {target}: it is not empty.", remedy="Name a new folder.")


@contextmanager
def _write_lock(state: StateDir, target: Path) -> Iterator[None]:
    """If `target` is in a work order's workspace, hold the workspace's writer's lock during the block."""
    below, inside = target.resolve(), state.workspaces.resolve()
    if not below.is_relative_to(inside) or below == inside:
        yield
        return
    order_id, runs = below.relative_to(inside).parts[0], Runs(state.runs)
    lock = runs.lock_writer(order_id)
    if lock is None:
        raise busy_error(runs, order_id)
    with close_after(lock):
        yield


def _age(age_seconds: int) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600)):
        if age_seconds >= length:
            return f"{age_seconds // length} {unit}"
    return f"{max(age_seconds, 0) // 60} min"
