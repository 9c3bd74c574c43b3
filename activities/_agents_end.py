"""The end of the agents that work for a work order, in its own workspace or in a lane that others use as well."""

import asyncio

from septet.agents.runs.folders import Run, Runs
from septet.agents.turns.finalize_run import end_all
from septet.contracts.workspace import Workspace


async def end_agents_of(runs: Runs, workspace: Workspace, why: str) -> None:
    """End the agent that works for a work order; in a lane that has passed on, the next one's goes on.

    Raises:
        AgentError: It could not be ended.
    """
    if workspace.lane:
        living = await asyncio.to_thread(runs.living, workspace.place_id)
        if living is not None and not _works_for(living, workspace.work_order_id):
            return
    await end_all(runs, workspace.place_id, why)


def _works_for(run: Run, order_id: str) -> bool:
    return run.record is not None and run.record.key.workflow_id == order_id
