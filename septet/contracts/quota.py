"""The pause of an account at a model's provider whose usage limit is reached."""

from septet.contracts.wire import Wire

MEMO: str = "quota"
"""The key of the workflow's memo under which the pause lies: whoever is about to start an agent reads it there."""


class QuotaPause(Wire):
    """Nobody starts an agent with this login until then."""

    agent: str
    until: float
    """Seconds since the epoch."""
    message: str = ""
    """The CLI's words."""


def quota_id(task_queue: str, login: str) -> str:
    """Return the id of the workflow that lives as long as a login is paused.

    Args:
        task_queue: The queue of work orders.
        login: A digest of the login; never the key.
    """
    return f"{task_queue}-quota/{login}"
