from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError

from clients.executions.messages import PIPELINE, WorkflowCalls
from septet.contracts.pipeline import PipelineCall
from septet.contracts.pipeline_view import PipelineView
from septet.errors import ServerNotReachedError


class Unanswered:
    """A workflow's handle whose wait for a worker is cut off, as the SDK says it."""

    id = "pl-1"

    async def start_update(self, *_asked: object, **_how: object) -> None:
        """Wait in vain."""
        raise WorkflowUpdateRPCTimeoutOrCancelledError


async def test_an_update_that_no_worker_takes_says_so() -> None:
    """Where the SDK hides the time-out behind an error of its own, it is a time-out all the same."""
    handle = cast("WorkflowHandle[Any, Any]", Unanswered())
    with pytest.raises(ServerNotReachedError, match="No worker has answered for pl-1") as away:
        await WorkflowCalls(handle, PIPELINE).update("pause", PipelineCall(), PipelineView)
    assert "septet worker" in away.value.remedy
