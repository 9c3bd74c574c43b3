"""The pause of a login whose usage limit is reached: at a model's provider, or at a forge."""

from septet.contracts.wire import Wire

MEMO: str = "quota"
"""The key of the workflow's memo under which the pause lies: whoever is about to ask reads it there."""
LONGEST_PAUSE_SECONDS: float = 32 * 86_400.0
"""Limits begin anew within a month: a moment that is farther away is a mistake."""


class QuotaPause(Wire):
    """Nobody starts an agent with this login, or asks a forge with this key, until then."""

    agent: str
    """Whose login it is: an agent's, or by its host a forge's API."""
    login: str = ""
    """The name of the further login that it is; empty for the workers' own."""
    until: float
    """Seconds since the epoch."""
    message: str = ""
    """The CLI's words, or what is to be known of the forge."""


def quota_id(task_queue: str, login: str) -> str:
    """Return the id of the workflow that lives as long as a login is paused.

    Args:
        task_queue: The queue of work orders.
        login: A digest of the login; never the key.
    """
    return f"{task_queue}-quota/{login}"
