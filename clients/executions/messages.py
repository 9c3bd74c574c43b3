"""Send queries and updates to workflows, and translate the refusals of the server into Septet's errors."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.errors import NotFoundError, RefusedTransitionError, SeptetError, ServerNotReachedError

Answer = TypeVar("Answer")
Result = TypeVar("Result", bound=Wire)
_CHECK: Final = "`septet doctor` checks the server."
_AWAY: Final = frozenset({
    RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.UNKNOWN,
})  # fmt: skip
"""The error codes of a server that is down or not reachable; `UNKNOWN` if a connection broke during an answer."""
START_WORKER: Final = "Start one with `septet up` or `septet worker`"
"""The beginning of the remedy for a call that no worker answered."""
_START: Final = f"Start it with `septet up`; {_CHECK}"
_ACCESS: Final = "Check TEMPORAL_NAMESPACE, and that your key may use that namespace: `septet docs cloud`."
_REMEDY: Final = f"{START_WORKER}."


_TOO_LONG: Final = (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError)
"""The errors after a time-out: the SDK may raise its own error instead of `TimeoutError`."""
_UPDATE_SECONDS: Final = 20.0
_NO_WORKER: Final = f"{START_WORKER}; it then carries out the decision if the server has received it."
_DECIDE_AGAIN: Final = f"{START_WORKER}, and decide again."


def server_refusal(error: RPCError) -> ServerNotReachedError:
    """Return Septet's error for an error of the server that is not about one particular workflow."""
    if is_away(error):
        return ServerNotReachedError(f"The Temporal server does not answer: {error.message}.", remedy=_START)
    refusals = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.NOT_FOUND}
    remedy = _ACCESS if error.status in refusals else _CHECK
    return ServerNotReachedError(f"The Temporal server refused: {error.message}.", remedy=remedy)


@contextmanager
def server_refusals() -> Iterator[None]:
    """Translate the server's errors during the block, as `server_refusal` does."""
    try:
        yield
    except RPCError as error:
        raise server_refusal(error) from error


def is_away(error: BaseException) -> bool:
    """Return whether an error, or the cause of the error, means that the server does not answer at all."""
    cause = error if isinstance(error, RPCError) else error.__cause__
    return isinstance(cause, RPCError) and cause.status in _AWAY


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of workflow for error messages: its noun, and the commands that show one or list all of them."""

    noun: str
    show: str
    list: str

    def refusal(self, error: RPCError, workflow_id: str) -> SeptetError:
        """Return Septet's error for the server's error on a read of a workflow."""
        if error.status is RPCStatusCode.NOT_FOUND:
            message = f"There is no {self.noun} {workflow_id}."
            return NotFoundError(message, remedy=f"See them all with `{self.list}`.")
        return server_refusal(error)

    @contextmanager
    def refusals(self, workflow_id: str) -> Iterator[None]:
        """Translate the server's errors during the block, as `refusal` does."""
        try:
            yield
        except RPCError as error:
            raise self.refusal(error, workflow_id) from error

    def refusal_of_open(self, error: RPCError, workflow_id: str) -> SeptetError:
        """Return Septet's error for a refused change of a workflow; a workflow that is not found has ended."""
        if error.status is RPCStatusCode.NOT_FOUND:
            message = f"{workflow_id} has ended, so there is nothing to decide."
            return RefusedTransitionError(message, remedy=f"See how it ended: {self.show} {workflow_id}")
        return server_refusal(error)


WORK_ORDER = Subject("work order", "septet show", "septet board")
BUDGET = Subject("budget", "septet budget show", "septet budget list")
COSTS = Subject("history of costs", "septet costs", "septet costs")
PIPELINE = Subject("pipeline", "septet pipeline show", "septet pipeline list")


@dataclass(frozen=True, slots=True)
class WorkflowCalls:
    """Sends queries and updates to one workflow."""

    handle: WorkflowHandle[Any, Any]
    subject: Subject

    async def query(self, name: str, kind: type[Answer], within_seconds: float = 5.0) -> Answer:
        """Send a query to the workflow, and return the answer.

        `within_seconds` limits the wait; the server itself would wait half a minute.

        Raises:
            NotFoundError: The workflow does not exist.
            ServerNotReachedError: No worker answers; or the server does not answer, or refuses.
        """
        who = self.handle.id
        try:
            async with asyncio.timeout(within_seconds):
                answer: Answer = await self.handle.query(name, result_type=kind)
        except TimeoutError as error:
            message = f"No worker has answered for {who} within {within_seconds:.0f} s."
            raise ServerNotReachedError(message, remedy=_REMEDY) from error
        except WorkflowQueryFailedError as error:
            raise ServerNotReachedError(f"{who} does not answer: {error}.", remedy=_REMEDY) from error
        except RPCError as error:
            if error.status is RPCStatusCode.FAILED_PRECONDITION:
                raise ServerNotReachedError(f"No worker has answered for {who}.", remedy=_REMEDY) from error
            raise self.subject.refusal(error, who) from error
        return answer

    async def update(
        self, name: str, decision: Wire, kind: type[Result], *, update_id: str | None = None
    ) -> Result | None:
        """Send an update and return its result; `None` if an accepted update has no result within 20 s.

        A run of the workflow accepts each `update_id` once.

        Raises:
            RefusedTransitionError: The workflow refuses the update, or has closed.
            ServerNotReachedError: No worker has answered.
        """
        try:
            with self._refusals():
                async with asyncio.timeout(_UPDATE_SECONDS):
                    stage = WorkflowUpdateStage.ACCEPTED
                    accepted = await self.handle.start_update(
                        name, decision, wait_for_stage=stage, id=update_id, result_type=kind
                    )
        except _TOO_LONG as error:
            message = f"No worker has answered for {self.handle.id} within {_UPDATE_SECONDS:.0f} s."
            raise ServerNotReachedError(message, remedy=_NO_WORKER) from error
        try:
            with self._refusals():
                async with asyncio.timeout(_UPDATE_SECONDS):
                    result: Result = await accepted.result()
                    return result
        except _TOO_LONG:
            return None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Translate errors of the workflow and of the server during the block into Septet's errors."""
        try:
            yield
        except WorkflowUpdateFailedError as error:
            raise _refusal(error.cause) from error
        except RPCError as error:
            raise self.subject.refusal_of_open(error, self.handle.id) from error


def unanswered(task: Task) -> ServerNotReachedError:
    """Return the error for a decision about `task` that no worker has answered."""
    return ServerNotReachedError(f"No worker has answered for {task.id}.", remedy=task.stuck or _DECIDE_AGAIN)


async def has_taken(handle: WorkflowHandle[Any, Any], update_id: str) -> bool:
    """Return whether the last run of a workflow has completed an update; false for a pending or unknown update.

    Raises:
        RPCError: The server refused.
    """
    try:
        await handle.get_update_handle(update_id).result(rpc_timeout=timedelta(seconds=5))
    except WorkflowUpdateFailedError:
        return True
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        return False
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


def _refusal(cause: BaseException) -> RefusedTransitionError:
    if not isinstance(cause, ApplicationError):
        return RefusedTransitionError(str(cause))
    if len(cause.details) > 1:
        message, remedy = cause.details[:2]
        return RefusedTransitionError(str(message), remedy=str(remedy))
    return RefusedTransitionError(cause.message)
