"""The errors about calls that no worker answers."""

from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError

from clients.executions.messages import PIPELINE, WorkflowCalls
from septet.errors import ServerNotReachedError
from septet.pipelines.inputs import PipelineCall
from septet.pipelines.views import PipelineView


class Unanswered:
    """A workflow's handle whose update times out, with the SDK's error."""

    id = "pl-1"

    async def start_update(self, *_asked: object, **_how: object) -> None:
        """Raise the SDK's error."""
        raise WorkflowUpdateRPCTimeoutOrCancelledError


async def test_an_update_that_no_worker_takes_says_so() -> None:
    """The SDK's own time-out error is reported as a worker that has not answered."""
    handle = cast("WorkflowHandle[Any, Any]", Unanswered())
    with pytest.raises(ServerNotReachedError, match="No worker has answered for pl-1") as away:
        await WorkflowCalls(handle, PIPELINE).update("pause", PipelineCall(), PipelineView)
    assert "septet worker" in away.value.remedy
