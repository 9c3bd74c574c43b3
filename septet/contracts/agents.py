"""What a host is asked about an agent, and answers, before a work order starts."""

from septet.contracts.task import TaskError
from septet.contracts.wire import Wire


class AgentQuestion(Wire):
    """Ask a host whether it can use an agent."""

    agent: str | None = None
    """`None` is the host's default."""


class AgentAnswer(Wire):
    """Whether a host can use an agent now."""

    error: TaskError | None = None
    """Why not, in the words in which a work order would fail; `None` where it can."""
