"""What is said where a workflow's worker does not answer a question."""

from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.messages import BUDGET, WorkflowCalls
from septet.contracts.budget import AccountView
from septet.errors import ServerNotReachedError


class WithoutPoller:
    """A workflow's handle whose server has seen no worker of its queue lately, as the SDK says it."""

    id = "septet-budget/day"

    async def query(self, *_asked: object, **_how: object) -> None:
        """Be refused."""
        words = "no poller seen for task queue recently, worker may be down"
        raise RPCError(words, RPCStatusCode.FAILED_PRECONDITION, b"")


async def test_a_query_without_a_worker_says_that_no_worker_has_answered() -> None:
    """The server's words for it name neither the workflow nor what to do."""
    handle = cast("WorkflowHandle[Any, Any]", WithoutPoller())
    with pytest.raises(ServerNotReachedError) as away:
        await WorkflowCalls(handle, BUDGET).query("account", AccountView)
    assert away.value.message == "No worker has answered for septet-budget/day."
    assert away.value.remedy == "Start one with `septet up` or `septet worker`."
