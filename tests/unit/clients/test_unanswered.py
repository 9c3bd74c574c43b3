"""The errors about calls that no worker answers."""

from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.messages import BUDGET, PIPELINE, WorkflowCalls
from septet.budgets.account import AccountView
from septet.errors import ServerNotReachedError
from septet.pipelines.inputs import PipelineCall
from septet.pipelines.views import PipelineView


class WithoutPoller:
    """A workflow's handle without a worker, with the SDK's error."""

    id = "septet-budget/day"

    async def query(self, *_asked: object, **_how: object) -> None:
        """Raise the SDK's error."""
        words = "no poller seen for task queue recently, worker may be down"
        raise RPCError(words, RPCStatusCode.FAILED_PRECONDITION, b"")


async def test_a_query_without_a_worker_says_that_no_worker_has_answered() -> None:
    """The error names the workflow and the command that starts a worker."""
    handle = cast("WorkflowHandle[Any, Any]", WithoutPoller())
    with pytest.raises(ServerNotReachedError) as away:
        await WorkflowCalls(handle, BUDGET).query("account", AccountView)
    assert away.value.message == "No worker has answered for septet-budget/day."
    assert away.value.remedy == "Start one with `septet up` or `septet worker`."


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
