"""Find and start budget accounts on the server; each run of an account starts from the previous run's result."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from septet.budgets.account import AccountState, SettleCall, account_id

_ANSWER_WITHIN: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class FoundAccount:
    """The last run of an account, and the state with which it ended."""

    read_at: float
    """When the account was read, in Unix seconds."""
    run_id: str = ""
    """The id of the account's last run; empty if the account never ran."""
    is_there: bool = False
    """Whether the account's last run is running or has completed."""
    ended_with: AccountState | None = None


async def find_account(client: Client, task_queue: str, scope: str) -> FoundAccount:
    """Return an account's last run from the server's list; this needs no worker and no billed Action.

    Raises:
        RPCError: The server did not answer, or refused.
    """
    read_at, workflow_id = time.time(), account_id(task_queue, scope)
    try:
        last = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=_ANSWER_WITHIN)
        if last.status is not WorkflowExecutionStatus.COMPLETED:
            return FoundAccount(read_at, last.run_id, is_there=last.status is WorkflowExecutionStatus.RUNNING)
        result = await _read_result(client, workflow_id, last.run_id)
        return FoundAccount(read_at, last.run_id, is_there=True, ended_with=result)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return FoundAccount(read_at)


async def open_account(
    client: Client, task_queue: str, opening: AccountState, account: FoundAccount, word: SettleCall | None = None
) -> None:
    """Start an account that does not run, from its last state, or else from `opening`.

    Args:
        account: The result of `find_account`, just read.
        word: The report of a turn's use, which the account gets together with its start.

    Raises:
        RPCError: The server did not answer, or refused.
    """
    if account.is_there and account.ended_with is None:
        return  # the account runs; if it has ended since, it is read again
    await client.start_workflow(
        "Account",
        (account.ended_with or opening).model_copy(update={"read_at": account.read_at}),
        id=account_id(task_queue, opening.scope),
        task_queue=task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=f"The budget of {opening.scope}"[:200],
        rpc_timeout=_ANSWER_WITHIN,
        start_signal=None if word is None else "settle",
        start_signal_args=[] if word is None else [word],
    )


@activity.defn(name="read_ended_account")
async def read_ended_account(opening: AccountState) -> AccountState:
    """Return the last state of the calling account's previous run; `opening` if that run did not complete.

    Writes nothing. All attempts return the same state, because an account has one run at a time.

    Raises:
        ApplicationError: The server's list does not show the end of the previous run yet; Temporal retries.
    """
    client, info = activity.client(), activity.info()
    workflow_id = info.workflow_id or ""
    rows = [row async for row in client.list_workflows(f'WorkflowId="{workflow_id}"')]
    earlier = [row for row in rows if row.run_id != info.workflow_run_id]
    last = max(earlier, key=lambda row: row.start_time, default=None)
    if last is None:
        return opening
    if last.status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW):
        message = f"The server's list does not say yet how {workflow_id} ended."
        raise ApplicationError(message, category=ApplicationErrorCategory.BENIGN)
    is_known = last.status is WorkflowExecutionStatus.COMPLETED
    return await _read_result(client, workflow_id, last.run_id) if is_known else opening


async def _read_result(client: Client, workflow_id: str, run_id: str) -> AccountState:
    handle = client.get_workflow_handle(workflow_id, run_id=run_id, result_type=AccountState)
    state: AccountState = await handle.result(rpc_timeout=_ANSWER_WITHIN)
    return state
