"""Which agents can be used on a machine, and the words for one that cannot: for the door and for the work."""

from pathlib import Path

from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import ADAPTERS, adapter_for
from septet.errors import AgentError, AgentMissingError


def usable_agents(machine: Machine, worktree: Path) -> tuple[str, ...]:
    """Return the agents whose programs are here and can work."""
    return tuple(name for name in ADAPTERS if _obstacle(name, machine, worktree) is None)


def check_usable(agent: str, machine: Machine, worktree: Path) -> None:
    """See that an agent can be used here.

    Raises:
        AgentMissingError: Its program is not here; the remedy names the agents that are.
        AgentError: It cannot work on this machine; the remedy says what to change.
    """
    obstacle = _obstacle(agent, machine, worktree)
    if isinstance(obstacle, AgentMissingError):
        others = ", ".join(usable_agents(machine, worktree)) or "none"
        remedy = f"{obstacle.remedy} Agents that the worker can use now: {others}."
        raise AgentMissingError(obstacle.message, remedy=remedy) from obstacle
    if obstacle is not None:
        raise obstacle


def _obstacle(agent: str, machine: Machine, worktree: Path) -> AgentError | None:
    try:
        adapter_for(agent).invocation(Turn(prompt="", worktree=worktree), machine)
    except AgentError as error:
        return error
    return None
