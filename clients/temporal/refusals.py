"""Translate the Temporal server's refusals into Septet's errors."""

from dataclasses import dataclass
from typing import Final

from temporalio.service import RPCError, RPCStatusCode

from septet.errors import NotFoundError, RefusedTransitionError, SeptetError, ServerNotReachedError

_CHECK: Final = "`septet doctor` checks the server."
_AWAY: Final = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.UNKNOWN,  # a connection that broke in the midst of an answer
    }
)
"""The codes of a server that is down or not reachable."""
START_WORKER: Final = "Start one with `septet up` or `septet worker`"
"""The beginning of the remedy if no worker has answered."""
_START: Final = f"Start it with `septet up`; {_CHECK}"
_ACCESS: Final = "Check TEMPORAL_NAMESPACE, and that your key may use that namespace: `septet docs cloud`."


def server_refusal(error: RPCError) -> ServerNotReachedError:
    """Return the error for a server's refusal that concerns no single workflow."""
    if is_away(error):
        return ServerNotReachedError(f"The Temporal server does not answer: {error.message}.", remedy=_START)
    refusals = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.NOT_FOUND}
    remedy = _ACCESS if error.status in refusals else _CHECK
    return ServerNotReachedError(f"The Temporal server refused: {error.message}.", remedy=remedy)


def is_away(error: BaseException) -> bool:
    """Return whether an error or its cause means that the server does not answer, and not that it refuses."""
    cause = error if isinstance(error, RPCError) else error.__cause__
    return isinstance(cause, RPCError) and cause.status in _AWAY


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of workflow, with the commands that show one and list all."""

    noun: str
    show: str
    list: str

    def refusal(self, error: RPCError, workflow_id: str) -> SeptetError:
        """Return the error for a server's refusal to read such a workflow."""
        if error.status is RPCStatusCode.NOT_FOUND:
            message = f"There is no {self.noun} {workflow_id}."
            return NotFoundError(message, remedy=f"See them all with `{self.list}`.")
        return server_refusal(error)

    def refusal_of_open(self, error: RPCError, workflow_id: str) -> SeptetError:
        """Return the error for a server's refusal to change such a workflow, which may have ended meanwhile."""
        if error.status is RPCStatusCode.NOT_FOUND:
            message = f"{workflow_id} has ended, so there is nothing to decide."
            return RefusedTransitionError(message, remedy=f"See how it ended: {self.show} {workflow_id}")
        return server_refusal(error)


WORK_ORDER = Subject("work order", "septet show", "septet board")
BUDGET = Subject("budget", "septet budget show", "septet budget list")
COSTS = Subject("history of costs", "septet costs", "septet costs")
PIPELINE = Subject("pipeline", "septet pipeline show", "septet pipeline list")
