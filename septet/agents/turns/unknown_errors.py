"""Count unknown errors of a model API, and report them with their cost: each try may be paid."""

from dataclasses import replace
from typing import Final

from septet.agents.outcomes.outcome import Outcome
from septet.contracts.amounts import usd_text
from septet.contracts.facts import Usage

MOST_TRIES: Final = 3
_REMEDY: Final = "Find out what it means, look in the run's files for what the agent did, then run `septet retry`."


def is_unknown_error(outcome: Outcome) -> bool:
    """Return whether a run ended by an error of which neither kind nor cure is known."""
    return (outcome.ended, outcome.kind) == ("api_error", "unknown")


def count_try(outcome: Outcome, tries: int, usage: Usage) -> Outcome:
    """Return the outcome of a try that ended so, in the CLI's words, with the tries' cost; the last one is final.

    Args:
        outcome: How the try ended.
        tries: How many ended so for the same turn, this one among them.
        usage: What all agents used that were started for it.
    """
    told = f"attempt {tries} of {MOST_TRIES}; cost so far: {_cost(usage)}"
    message = f"{outcome.message.rstrip()} (an unknown API error, {told})."
    if tries < MOST_TRIES:
        return replace(outcome, message=message)
    return replace(outcome, message=message, remedy=_REMEDY, retryable=False)


def _cost(usage: Usage) -> str:
    cost = "unknown" if usage.cost_usd is None else f"{usd_text(usage.cost_usd)} USD"
    return f"{cost}, {usage.tokens:,} tokens" if usage.tokens else cost
