"""The pause of a login or of a forge's key whose quota is used up."""

from septet.contracts.wire import Wire

MEMO: str = "quota"
"""The key under which a workflow's memo holds the pause."""
LONGEST_PAUSE_SECONDS: float = 32 * 86_400.0
"""The longest pause in seconds: usage limits reset within a month, so a later time is a mistake."""


class QuotaPause(Wire):
    """A time in which no agent uses a login, or no request uses a forge's key."""

    agent: str
    """The agent of the login, or the host name of a forge's API."""
    login: str = ""
    """The name of a further login; empty for the workers' own login."""
    until: float
    """The end of the pause, in seconds since the epoch."""
    message: str = ""
    """The CLI's message about its limit, or Septet's about the forge's limit."""


def quota_id(task_queue: str, login: str) -> str:
    """Return the id of the workflow for a login's pause; `login` is a digest, never a key."""
    return f"{task_queue}-quota/{login}"
