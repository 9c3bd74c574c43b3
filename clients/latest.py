"""The rows of runs that nothing has come after: a run that was reset stays in the server's index as it closed."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution

from septet.contracts.names import ORDER_ID

_NAME: Final = re.compile(f"{ORDER_ID.pattern}(/pr)?")
_OPEN: Final = datetime.max.replace(tzinfo=UTC)


async def latest(client: Client, rows: Sequence[WorkflowExecution]) -> list[WorkflowExecution]:
    """Return the rows without those that a reset has taken up again.

    The server is asked once more, for closed ones alone: what is open is the latest.

    Raises:
        RPCError: The server refused.
    """
    closed = sorted({row.id for row in rows if row.close_time is not None and _NAME.fullmatch(row.id)})
    if not closed:
        return list(rows)
    last: dict[str, WorkflowExecution] = {}
    names = ", ".join(f'"{name}"' for name in closed)
    async for run in client.list_workflows(f"WorkflowId IN ({names})"):
        if run.id not in last or _closed(run) > _closed(last[run.id]):
            last[run.id] = run
    return [row for row in rows if row.id not in last or row.run_id == last[row.id].run_id]


def _closed(run: WorkflowExecution) -> datetime:
    return run.close_time or _OPEN
