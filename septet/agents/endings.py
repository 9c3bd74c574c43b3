"""How a run ended whose stream holds no result that counts: the exit record and stderr tell."""

from dataclasses import dataclass
from signal import Signals
from typing import Final

from septet.agents.outcome import Ended, ExitRecord

TURN_LIMIT: Final = "turn_limit"
AFTER_RESULT: Final = "after_result"
CANCELLED: Final = "cancelled"
SUPERSEDED: Final = "superseded"
"""Reasons for which an agent is asked to end; a caller may have others."""

_OWN_REASONS: Final = frozenset({TURN_LIMIT, AFTER_RESULT})
_STDERR_SHOWN: Final = 600


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, why, and what to do."""

    ended: Ended
    kind: str
    message: str
    remedy: str = ""


def came_by_itself(end: ExitRecord) -> bool:
    """Whether the exit code and signal are the CLI's own, and not what its supervisor did to it."""
    return end.cause in {"exited", "lost"}


def on_request(end: ExitRecord) -> Ending | None:
    """Return how a run ended that somebody asked to end, whatever its stream holds; `None` for any other."""
    if end.cause == "ended" and end.why not in _OWN_REASONS:
        return Ending("cancelled", end.why, f"The agent was ended: {end.why}.")
    if end.cause == "orphan_limit":
        return Ending("cancelled", "orphan_limit", "The agent was ended: no worker had followed it for too long.")
    return None


def at_limit(end: ExitRecord) -> Ending | None:
    """Return the limit at which the run was ended; `None` when none was reached."""
    if end.cause == "wall_limit":
        remedy = "Give the step more time (`timeouts.wall_seconds`) or smaller work, then `septet retry`."
        return Ending("limit", "wall", "The agent reached its limit of time.", remedy)
    if end.cause == "idle_limit":
        remedy = "See the run's stream for what it waited for; `timeouts.idle_seconds` sets the limit."
        return Ending("limit", "idle", "The agent printed nothing for too long.", remedy)
    if end.cause == "ended" and end.why == TURN_LIMIT:
        remedy = "Allow more turns (`timeouts.turns`) or give it smaller work, then `septet retry`."
        return Ending("limit", "turns", "The agent reached its limit of turns.", remedy)
    return None


def without_result(end: ExitRecord, stderr: str, *, spoke: bool) -> Ending:
    """Return how a run ended that gave no result.

    Args:
        end: How the process ended.
        stderr: What it printed there.
        spoke: Whether there was any event on its stream.
    """
    shown = stderr.strip()[-_STDERR_SHOWN:]
    if end.cause == "not_started":
        return Ending("crashed", "not_started", f"The agent's program did not start: {end.why}.")
    if end.cause == "lost":
        return Ending("crashed", "lost", "The agent's supervisor was killed, and the agent with it.")
    if end.cause == "terminated":
        return Ending("crashed", "terminated", "The agent's supervisor was told to end.")
    if end.signal is not None:
        return Ending("crashed", "signal", f"The agent was killed by {_name(end.signal)}. {shown}".strip())
    if end.exit_code == 0:
        return Ending("no_result", "no_result_event", f"The agent ended without a result. {shown}".strip())
    if not spoke and shown:
        remedy = "Correct what it says, then `septet retry`."
        return Ending("crashed", "refused", f"The agent's program refused to start: {shown}", remedy)
    return Ending("crashed", "exit_code", f"The agent ended with exit code {end.exit_code}. {shown}".strip())


def _name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
