"""Read from disk the usage limit at which a turn's last agent ended: each run's limit is reported once."""

from dataclasses import dataclass
from typing import Final

from septet.agents.clis.adapter import Adapter
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.api_errors import REFUSAL
from septet.agents.runs.folders import Run
from septet.agents.turns.failures import failure_of
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnRuns
from septet.errors import AgentApiUnavailableError

_TOLD: Final = "limit-told"


@dataclass(frozen=True, slots=True)
class UsageLimit:
    """An agent run that ended at the usage limit of its login."""

    run: Run
    adapter: Adapter
    login: str
    """The name of the further login; empty for the worker's own."""
    until: float
    """When it begins anew, as far as it is known: seconds since the epoch, and possibly over."""
    message: str
    """The CLI's words."""


def find_usage_limit(request: TurnRequest) -> UsageLimit | None:
    """Return the unreported usage limit at which a request's last agent ended; `None` without one.

    Raises:
        OSError: The run's files cannot be read.
    """
    turn_runs = TurnRuns(request)
    last = turn_runs.last_result()
    record = last.run.record if last is not None else None
    if last is None or record is None or last.outcome.ended != "api_error" or (last.run.folder / _TOLD).exists():
        return None
    error = failure_of(last.outcome, last.run, turn_runs.starts())
    if not isinstance(error, AgentApiUnavailableError) or not error.is_usage_limit:
        return None
    until = (last.outcome.ended_at_seconds or 0.0) + (error.retry_after_seconds or 0.0)
    return UsageLimit(last.run, adapter_for(record.agent), record.login, until, error.message)


def note_usage_limit(limit: UsageLimit) -> None:
    """Record that a usage limit is reported.

    Raises:
        OSError: The disk refused.
    """
    limit.run.put(_TOLD, b"")


def in_order(requests: list[TurnRequest]) -> list[TurnRequest]:
    """Return a turn's requests in the order in which their agents are tried.

    The agent that worked last continues; if its model has refused, it comes last.
    """
    last = TurnRuns(requests[0]).last_result()
    if last is None:
        return requests
    refused = last.outcome.kind == REFUSAL.kind
    return sorted(requests, key=lambda request: (request.adapter.name != last.agent) != refused)
