"""Merge the pull request of a work order whose forge is a repository on this machine."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from temporalio.service import RPCError

from clients.operations.operations import Operations
from clients.temporal.pull_request_watch import tell_watches
from septet.contracts.names import LOCAL_PULL, Stage
from septet.contracts.replies import TaskReply
from septet.errors import RefusedTransitionError
from septet.forges.local.forge import LocalForge

_READS_AFTER_MERGE: Final = 25
"""The most times that `merge` checks whether the board shows the merge."""
_READ_SECONDS: Final = 0.2


async def merge(operations: Operations, order_id: str) -> TaskReply:
    """Merge the pull request of a work order, and return the work order.

    Raises:
        RefusedTransitionError: The pull request is not of a repository on this machine.
        ForgeError: The pull request is no longer open, or conflicts with its base.
    """
    orders = operations.orders
    task = await orders.get(order_id)
    pull = LOCAL_PULL.fullmatch(task.pr_url or "")
    if pull is None:
        where = f"its pull request is {task.pr_url}" if task.pr_url else "it has no pull request yet"
        remedy = "Merge it on its own forge." if task.pr_url else "Wait for its last step."
        raise RefusedTransitionError(f"{order_id} cannot be merged here: {where}.", remedy=remedy)
    forge = LocalForge(Path(unquote(pull["path"])), operations.git_env)
    merged = await asyncio.to_thread(forge.merge_pull_request, int(pull["number"]))
    with suppress(RPCError):  # the watch polls the pull request anyway
        await tell_watches(operations.client, merged.url)
    for _ in range(_READS_AFTER_MERGE):
        if (task := await orders.get(order_id)).stage is not Stage.REVIEW:
            break
        await asyncio.sleep(_READ_SECONDS)
    return TaskReply(task=task)
