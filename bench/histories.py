"""The histories of workflows on the server."""

from collections import Counter
from typing import Any

from temporalio.client import Client, WorkflowHandle


async def read_history(handle: WorkflowHandle[Any, Any]) -> tuple[int, int]:
    """Return the events of one run of a workflow, and their bytes."""
    events = [event async for event in handle.fetch_history_events()]
    return len(events), sum(event.ByteSize() for event in events)


async def read_kept(client: Client) -> Counter[str]:
    """Return the bytes of the histories of all runs in the namespace, by type of workflow."""
    kept: Counter[str] = Counter()
    async for run in client.list_workflows():
        _, size = await read_history(client.get_workflow_handle(run.id, run_id=run.run_id))
        kept[run.workflow_type] += size
    return kept
