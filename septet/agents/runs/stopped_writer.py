"""A worker that was stopped with the writer's lock in hand: the kernel gives that back only with its process."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

from septet.agents.processes.process_tree import identity
from septet.agents.runs.folders import Runs
from septet.system.lock_holder import read_lock_holders, stopped_holder

WorkerId = tuple[int, int]
"""A process id, and when it started, in the kernel's ticks since the boot."""


def worker_id(pid: int) -> WorkerId:
    """Return what tells a process from one that gets its number later; zeros where the system does not tell."""
    start = identity(pid)["pid_start"]
    return (pid, int(start)) if start is not None else (0, 0)


def end_stopped_writer(runs: Runs, order_id: str, older_writers: Collection[WorkerId]) -> bool:
    """Kill the worker that is stopped and holds a work order's writer's lock, with what it runs in the worktree.

    It loses nothing by it: its other agents live on and are adopted. Whoever is no such worker, as a person's
    `septet rescue restore`, is left alone. Return whether there was one.

    Args:
        runs: The runs of this host.
        order_id: The work order.
        older_writers: The workers whose attempts at it are superseded.
    """
    holder = stopped_holder(runs.lock_of(order_id), read_lock_holders())
    if holder is None or worker_id(holder.pid) not in older_writers:
        return False
    worktrees = {Path(run.record.worktree) for run in runs.of(order_id) if run.record is not None}
    with suppress(psutil.Error):
        at_work = [child for child in holder.children(recursive=True) if _is_in(child, worktrees)]
        for process in (holder, *at_work):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    return True


def _is_in(process: psutil.Process, worktrees: set[Path]) -> bool:
    with suppress(psutil.Error):
        folder = Path(process.cwd())
        return any(folder.is_relative_to(worktree) for worktree in worktrees)
    return False
