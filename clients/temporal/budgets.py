"""Read, set and raise the budgets of an installation, each of which is an `Account` workflow."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.turns.account_archive import FoundAccount, find_account, open_account
from clients.executions.index import page_of
from clients.executions.messages import BUDGET, WorkflowCalls, server_refusal, server_refusals
from septet.budgets.account import (
    DAY,
    ORDER,
    PIPELINE,
    PROJECT,
    AccountState,
    AccountView,
    BudgetName,
    BudgetReply,
    BudgetsReply,
    LimitCall,
    RaiseReply,
    RaiseView,
    account_id,
)
from septet.budgets.account_amounts import find_unknown_step
from septet.budgets.account_book import AccountBook
from septet.contracts.names import BUDGET_NAMES
from septet.contracts.seal import UNSEALED_INPUT
from septet.errors import (
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    SealedError,
    ServerNotReachedError,
)

View = TypeVar("View", bound=AccountView)
BUDGETS_AT_ONCE: Final = 200
_AT_ONCE: Final = 20
_OPEN: Final = 'WorkflowType="Account" AND ExecutionStatus="Running"'
_OPEN_OR_ENDED: Final = 'WorkflowType="Account" AND ExecutionStatus IN ("Running", "Completed")'
_NAME: Final[TypeAdapter[str]] = TypeAdapter(BudgetName)


@dataclass(frozen=True, slots=True)
class BudgetClient:
    """Reads, sets and raises the budgets of the installation that works on `task_queue`."""

    client: Client
    task_queue: str = "septet"

    async def show(self, scope: str) -> BudgetReply:
        """Return a budget's limit, what was used, and the work orders that wait for the budget.

        Raises:
            InvalidInputError: `scope` is not the name of a budget.
            NotFoundError: The budget does not exist.
            ServerNotReachedError: The server, or the workflow that keeps the budget's account, did not answer.
        """
        scope = whole_scope(scope)
        try:
            return BudgetReply(budget=await self._ask(scope, await self._look_up(scope)))
        except NotFoundError as error:
            raise _unknown(scope) from error
        except ServerNotReachedError as error:
            if await self._began_unsealed(scope):
                raise _unknown(scope) from error
            raise

    async def list(self, *, after: str = "", limit: int = BUDGETS_AT_ONCE) -> BudgetsReply:
        """Return a page of budgets, newest first; the first page begins with the day's and each project's budget.

        `limit` does not apply to the budgets of the day and of projects. A budget whose account was opened again
        appears once.

        Raises:
            NotFoundError: `after` is not the `next` of a page.
            ServerNotReachedError: The server or the accounts did not answer.
        """
        own = f"({self._begins(ORDER)} OR {self._begins(PIPELINE)})"
        rows, following = await page_of(self.client, f"{own} AND {_OPEN_OR_ENDED}", after=after, limit=limit)
        day = f'WorkflowId="{account_id(self.task_queue, DAY)}"'
        query = f"({day} OR {self._begins(PROJECT)}) AND {_OPEN}"
        with server_refusals():
            shared = [] if after else sorted([row.id async for row in self.client.list_workflows(query)])
        prefix = account_id(self.task_queue, "")
        asked = [(row, "") for row in shared]
        asked += [(row.id, row.run_id if row.close_time is not None else "") for row in rows]
        views = await self._ask_all([(name.removeprefix(prefix), ended_run) for name, ended_run in asked])
        return BudgetsReply(budgets=tuple(views), next=following)

    async def set(self, scope: str, call: LimitCall) -> BudgetReply:
        """Set the limit of a budget, and return the budget; a missing budget is created.

        Raises:
            InvalidInputError: `scope` is not the name of a budget, or the step is unknown.
            RefusedTransitionError: The limit is invalid.
            ServerNotReachedError: The server or the account did not answer.
        """
        scope = _scope_of(scope, call)
        await self._open(scope, await self._look_up(scope))
        view = await self._update(scope, "set_limit", call, AccountView)
        return BudgetReply(budget=view) if view is not None else await self.show(scope)

    async def raise_limit(self, scope: str, call: LimitCall) -> RaiseReply:
        """Raise a budget by an amount; work that waits for the budget continues.

        If a `RaiseCall` names the limit that the caller saw, and the limit has changed since, nothing is added.

        Raises:
            InvalidInputError: `scope` is not the name of a budget, or the step is unknown.
            NotFoundError: The budget does not exist.
            RefusedTransitionError: The amount cannot be added.
            ServerNotReachedError: The server or the account did not answer.
        """
        scope = _scope_of(scope, call)
        await self.show(scope)
        await self._open(scope, await self._look_up(scope))
        view = await self._update(scope, "raise_limit", call, RaiseView)
        if view is None:  # the account accepted the update, and is slow to answer
            return RaiseReply(budget=(await self.show(scope)).budget, is_raised=True)
        return RaiseReply(budget=view, is_raised=view.is_raised)

    async def _look_up(self, scope: str) -> FoundAccount:
        with server_refusals():
            return await find_account(self.client, self.task_queue, scope)

    async def _open(self, scope: str, account: FoundAccount) -> None:
        with server_refusals():
            await open_account(self.client, self.task_queue, AccountState(scope=scope), account)

    def _begins(self, kind: str) -> str:
        return f'WorkflowId STARTS_WITH "{account_id(self.task_queue, kind)}/"'

    async def _ask_all(self, accounts: Sequence[tuple[str, str]]) -> Sequence[AccountView]:
        """Return accounts' views; omit accounts that do not answer, and ended runs that a later run replaced.

        `accounts` has pairs: an account's scope, and the id of its ended run, or an empty text for an open run.
        """
        views = list[AccountView]()
        for first in range(0, len(accounts), _AT_ONCE):
            answers = await asyncio.gather(*(self._find(*each) for each in accounts[first : first + _AT_ONCE]))
            views += [answer for answer in answers if isinstance(answer, AccountView)]
            silent = [answer for answer in answers if isinstance(answer, ServerNotReachedError)]
            if silent and not views:
                raise silent[0]
        return views

    async def _find(
        self, scope: str, ended_run: str
    ) -> AccountView | NotFoundError | ServerNotReachedError | None:
        """Return an account's view, or the error of the read; `None` if a later run replaced `ended_run`."""
        try:
            found = await self._look_up(scope)
            return await self._ask(scope, found) if ended_run in {"", found.run_id} else None
        except (NotFoundError, ServerNotReachedError) as error:
            return error

    async def _update(self, scope: str, update: str, call: LimitCall, kind: type[View]) -> View | None:
        handle = self.client.get_workflow_handle(account_id(self.task_queue, scope))
        try:
            view = await WorkflowCalls(handle, BUDGET).update(update, call, kind)
        except RefusedTransitionError as error:
            if await self._began_unsealed(scope):
                raise SealedError("Workers refuse a budget that is not sealed.") from error
            raise
        return view.on(_today()) if view is not None else None

    async def _began_unsealed(self, scope: str) -> bool:
        """Return whether workers refused to open the account because its input was not sealed."""
        handle = self.client.get_workflow_handle(account_id(self.task_queue, scope))
        try:
            if (await handle.describe()).status is WorkflowExecutionStatus.FAILED:
                await handle.result(follow_runs=False)
        except WorkflowFailureError as error:
            return isinstance(error.cause, ApplicationError) and error.cause.type == UNSEALED_INPUT
        except RPCError as error:
            raise server_refusal(error) from error
        return False

    async def _ask(self, scope: str, account: FoundAccount) -> AccountView:
        """Query an account for its view, or make the view from the last state if the account has ended."""
        if account.ended_with is not None:
            book = AccountBook(account.ended_with)
            book.take_time(datetime.now(UTC))
            return book.view
        handle = self.client.get_workflow_handle(account_id(self.task_queue, scope))
        return (await WorkflowCalls(handle, BUDGET).query("account", AccountView)).on(_today())


def whole_scope(name: str) -> str:
    """Return the full name of a budget: `wo-42`, for example, becomes `order/wo-42`.

    Raises:
        InvalidInputError: The name is not the name of a budget.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        message = f"{name!r} is not the name of a budget."
        raise InvalidInputError(message, remedy=f"Name {BUDGET_NAMES}.") from error
    if name.lower() == DAY:
        return DAY
    return name if "/" in name else f"{ORDER}/{name}"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _scope_of(scope: str, call: LimitCall) -> str:
    """Refuse a call with an unknown step; return the budget's full name, such as `order/wo-42`."""
    message, remedy = find_unknown_step(call.step)
    if message:
        raise InvalidInputError(message, remedy=remedy)
    return whole_scope(scope)


def _unknown(scope: str) -> NotFoundError:
    remedy = f"See them all with `septet budget list`; `septet budget set {scope} 5usd` makes one."
    return NotFoundError(f"There is no budget of {scope}.", remedy=remedy)
