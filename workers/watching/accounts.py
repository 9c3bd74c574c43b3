"""Reach the budget accounts of an installation, and the pauses that its hosts share."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

import structlog
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.host.host import Accounts
from activities.host.payloads import read_memo
from activities.turns.account_archive import FoundAccount, find_account, open_account
from septet.budgets.account import AccountState, Grant, ReserveCall, SettleCall, account_id
from septet.contracts.pauses import MEMO, QuotaPause, quota_id
from septet.errors import SeptetError, ServerNotReachedError
from septet.forges.http.pauses import PAUSES

_ANSWER_WITHIN: Final = timedelta(seconds=30)
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2
_TRIED_AGAIN: Final = frozenset({RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION})
"""The server's errors if an account does not exist yet, or a new run of it is just beginning."""


class AccountNotReachedError(ServerNotReachedError):
    """The account of a budget did not answer."""

    retryable = True
    default_remedy = "Septet tries again automatically."


class FleetAccounts:
    """Calls the workflows of type `Account`: an update reserves room, a signal reports use."""

    def __init__(self, client: Client, task_queue: str, answer_within: timedelta = _ANSWER_WITHIN) -> None:
        """Use the accounts of a queue; a request to reserve waits at most `answer_within` for its reply."""
        self._client = client
        self.task_queue = task_queue
        self._answer_within = answer_within

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        """Reserve room for a turn, and return the reply; `None` if there is no account and `opens` is false.

        A new account begins as `opening`. A repeated call returns the same reply, and reserves nothing more.

        Raises:
            AccountNotReachedError: The account did not answer.
        """
        workflow_id = account_id(self.task_queue, opening.scope)
        handle = self._client.get_workflow_handle(workflow_id)
        for attempt in range(_TRIES):
            try:
                grant: Grant = await handle.execute_update(
                    "reserve", call, result_type=Grant, rpc_timeout=self._answer_within
                )
            except WorkflowUpdateRPCTimeoutOrCancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling() > 0:  # the SDK hides it
                    raise asyncio.CancelledError from error
                message = f"The account {workflow_id} did not answer: no worker has taken it up."
                raise AccountNotReachedError(message) from error
            except RPCError as error:
                if error.status not in _TRIED_AGAIN:
                    raise _not_reached(workflow_id, error) from error
                is_there = error.status is not RPCStatusCode.NOT_FOUND
            else:
                return grant
            if attempt or is_there:
                await asyncio.sleep(_PAUSE_SECONDS)
            if not is_there:
                found = await self._find(opening.scope)
                if not found.is_there and not opens:
                    return None
                await self._open(opening, found)
        raise AccountNotReachedError(f"The account {workflow_id} does not answer.")

    async def is_open(self, scope: str) -> bool:
        """Return whether an account is open; this needs no worker.

        Raises:
            AccountNotReachedError: The server does not answer, or refuses.
        """
        return (await self._find(scope)).is_there

    async def settle(self, scope: str, call: SettleCall) -> None:
        """Report a turn's use to an account; do nothing if the account is missing, or knows the use already.

        If the account has ended without this report, start the account again.

        Raises:
            AccountNotReachedError: The server does not answer, or refuses.
        """
        workflow_id = account_id(self.task_queue, scope)
        handle = self._client.get_workflow_handle(workflow_id)
        for attempt in range(_TRIES):
            try:
                await handle.signal("settle", call, rpc_timeout=_ANSWER_WITHIN)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise _not_reached(workflow_id, error) from error
            else:
                return
            found = await self._find(scope)
            ended_with = found.ended_with
            if not found.is_there or (ended_with is not None and not ended_with.waits_for(call.key)):
                return
            if ended_with is not None:
                await self._open(ended_with, found, call)
                return
            await asyncio.sleep(_PAUSE_SECONDS * attempt)
        raise AccountNotReachedError(f"The account {workflow_id} takes no word.")

    async def find_pause(self, login: str) -> QuotaPause | None:
        """Return the pause of a login, or `None`; this needs no worker.

        Raises:
            AccountNotReachedError: The server does not answer, or refuses.
        """
        description = await self._describe(quota_id(self.task_queue, login))
        return None if description is None else await read_memo(description, MEMO, QuotaPause)

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        """Share a login's pause with all hosts, by a workflow that runs until the pause ends.

        Raises:
            AccountNotReachedError: The server does not answer, or refuses.
        """
        workflow_id = quota_id(self.task_queue, login)
        try:
            await self._client.start_workflow(
                "Quota",
                pause,
                id=workflow_id,
                task_queue=self.task_queue,
                start_signal="pause",
                start_signal_args=[pause],
                memo={MEMO: pause},
                static_summary=f"The usage limit of a login of {pause.agent} is reached",
                rpc_timeout=_ANSWER_WITHIN,
            )
        except RPCError as error:
            raise _not_reached(workflow_id, error) from error

    async def _describe(self, workflow_id: str) -> WorkflowExecutionDescription | None:
        """Return the description of a running workflow; `None` if the workflow does not run."""
        try:
            description = await self._client.get_workflow_handle(workflow_id).describe(rpc_timeout=_ANSWER_WITHIN)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise _not_reached(workflow_id, error) from error
        return description if description.status is WorkflowExecutionStatus.RUNNING else None

    async def _find(self, scope: str) -> FoundAccount:
        try:
            return await find_account(self._client, self.task_queue, scope)
        except RPCError as error:
            raise _not_reached(account_id(self.task_queue, scope), error) from error

    async def _open(self, opening: AccountState, account: FoundAccount, word: SettleCall | None = None) -> None:
        try:
            await open_account(self._client, self.task_queue, opening, account, word)
        except RPCError as error:
            raise _not_reached(account_id(self.task_queue, opening.scope), error) from error


def _not_reached(workflow_id: str, error: RPCError) -> AccountNotReachedError:
    return AccountNotReachedError(f"The account {workflow_id} could not be reached: {error.message}.")


_ANSWER_WITHIN_SECONDS: Final = 2.0
"""How many seconds a request to a forge waits for the server's answer about pauses."""
_LEFT_ALONE_SECONDS: Final = 30.0
"""How many seconds after a call without an answer the server is called again."""

_log: Final = structlog.get_logger()

T = TypeVar("T")


@asynccontextmanager
async def sharing_forge_pauses(accounts: Accounts) -> AsyncIterator[None]:
    """While the block runs, let this process and all hosts share the pauses of their requests to forges."""
    PAUSES.fleet = SharedForgePauses(accounts, asyncio.get_running_loop())
    try:
        yield
    finally:
        PAUSES.fleet = None


@dataclass(slots=True)
class SharedForgePauses:
    """Shares each pause of a forge with all hosts, by a workflow of type `Quota` whose memo holds the pause.

    Threads that send requests to forges call these methods; the worker's event loop calls the server.
    """

    accounts: Accounts
    loop: asyncio.AbstractEventLoop
    _loop_thread: int = field(default_factory=threading.get_ident)
    _asks_again_at: float = 0.0
    """When the server may be called again, by the monotonic clock."""

    def until(self, budget: str) -> float:
        """Return when the pause of a forge's rate limit `budget` ends, in Unix seconds; 0 without a pause."""
        pause = self._answer(self.accounts.find_pause(_login(budget)))
        return pause.until if pause is not None else 0.0

    def note(self, budget: str, host: str, until: float) -> None:
        """Share with all hosts the pause, until `until`, of the rate limit `budget` of the forge at `host`."""
        pause = QuotaPause(agent=host, until=until, message="It takes no more requests from this key until then.")
        self._answer(self.accounts.note_pause(_login(budget), pause))

    def _answer(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Return the server's answer; `None` without an answer: each host then finds used-up limits itself."""
        if threading.get_ident() == self._loop_thread or time.monotonic() < self._asks_again_at:
            call.close()
            return None
        try:
            answer = asyncio.run_coroutine_threadsafe(call, self.loop)
        except RuntimeError:  # the worker has just ended
            call.close()
            return None
        try:
            return answer.result(_ANSWER_WITHIN_SECONDS)
        except (SeptetError, TimeoutError, CancelledError) as error:
            answer.cancel()
            self._asks_again_at = time.monotonic() + _LEFT_ALONE_SECONDS
            _log.warning("forge_pauses_not_shared", error=str(error) or type(error).__name__)
            return None


def _login(budget: str) -> str:
    """Return the name that stands for the rate limit `budget` where a pause needs the name of a login."""
    return f"forge-{budget[:24]}"
