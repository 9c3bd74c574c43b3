"""The error for a failed outcome, with the run's folder and the remedy."""

from collections.abc import Sequence
from typing import Final

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.endings import OTHER_DIALECT, SILENT
from septet.agents.outcomes.outcome import Outcome
from septet.agents.proxy.model_port import OPENS
from septet.agents.runs.folders import Run
from septet.agents.runs.network import refused_requests
from septet.agents.runs.records import StartReason
from septet.errors import (
    AgentApiError,
    AgentApiUnavailableError,
    AgentCrashedError,
    AgentError,
    AgentGaveUpError,
    AgentLimitError,
    AgentMissingError,
    AgentRefusedError,
)

_USAGE_LIMIT: Final = "rate_limit"
_LONGEST_WAIT_SECONDS: Final = 900.0
_RETRY: Final = "Look there for the cause; `septet retry` starts the step again."

_ENDS: Final = (".", "!", "?", ":", "…", "`")
_MOST_REQUESTS: Final = 5
_PROGRAM: Final = "Make sure that the program is installed and executable, then run `septet retry`."


def failure_of(
    outcome: Outcome, run: Run, starts: Sequence[StartReason], *, crashed_again: bool = False
) -> AgentError:
    """Return the error for an outcome.

    Each wait is twice as long as the wait before, by the `starts` of the step's runs, unless the CLI has named
    the time. `crashed_again` states that every rung of the ladder was tried.
    """
    words = outcome.message.rstrip()
    message = f"{words}{'' if words.endswith(_ENDS) else '.'} The run's files are in {run.folder}."
    remedy = f"{_open_requests(run)}{outcome.remedy or _remedy_by_hand(outcome, run) or _RETRY}"
    if outcome.retryable and not crashed_again:
        wait = outcome.retry_after_seconds or 1.0
        if not outcome.retry_is_named:
            wait = min(wait * 2 ** min(starts.count("waited"), 10), max(_LONGEST_WAIT_SECONDS, wait))
        kind = AgentApiUnavailableError if outcome.ended == "api_error" else AgentCrashedError
        error = kind(message, remedy="Septet tries again automatically.", retry_after_seconds=wait)
        if isinstance(error, AgentApiUnavailableError):
            error.is_usage_limit = outcome.kind == _USAGE_LIMIT
        return error
    if crashed_again:
        history = f"The agent was started {len(starts)} times, and ended each time without a result. {message}"
        return AgentGaveUpError(history, remedy=remedy)
    if outcome.ended == "api_error":
        refused = AgentApiError(message, remedy=remedy)
        refused.may_be_of_session = outcome.may_be_of_session
        return refused
    if outcome.ended == "limit":
        return AgentLimitError(message, remedy=remedy)
    if outcome.kind == "not_started":
        program = run.record.argv[0] if run.record is not None else "the agent's program"
        return AgentMissingError(f"{program}: {message}", remedy=outcome.remedy or _PROGRAM)
    return AgentRefusedError(message, remedy=remedy)


def _open_requests(run: Run) -> str:
    """Return the remedy for the model requests that the sandbox refused; empty without a refused request."""
    refused = refused_requests(run)[:_MOST_REQUESTS]
    if not refused:
        return ""
    setting = f'{OPENS}="{",".join(refused)}"'
    return (
        f"Its sandbox refused requests to the model: where it needs them, restart the worker with {setting}, "
        "in addition to what is set already. "
    )


def _remedy_by_hand(outcome: Outcome, run: Run) -> str:
    """Return the remedy for a program that printed nothing, or nothing that Septet understands; else empty."""
    if run.record is None or outcome.kind not in {SILENT, OTHER_DIALECT}:
        return ""
    agent, program = run.record.agent, f"`{run.record.argv[0]}`"
    facts = adapter_for(agent).capabilities
    if outcome.kind == OTHER_DIALECT:
        version = f"Septet knows the events of version {facts.tested_version} of {agent}"
        return f"{version}: install it in place of {program}, then run `septet retry`."
    look = f"run {program} in an empty folder, as the worker's user, to see what it says"
    if facts.needs_login:
        files = ", ".join(facts.login_files)
        look = f"its login or its quota may have run out: {look}; its login and its configuration are in {files}"
    return f"{look[0].upper()}{look[1:]}. Then run `septet retry`."
