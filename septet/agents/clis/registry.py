"""All agents by name, and the agents that can be used on a machine.

A new CLI is a folder here with a module `adapter` that has its adapters in `ADAPTERS`, and a name in
`septet.contracts.names.AGENTS`.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from septet.agents import clis
from septet.agents.clis.adapter import Adapter, Machine, Turn, select_variables
from septet.agents.clis.own_files import locate, read_own_file
from septet.errors import AgentError, AgentMissingError


def _find_adapters() -> Iterator[Adapter]:
    for module in iter_modules(clis.__path__):
        if module.ispkg:
            yield from import_module(f"{clis.__name__}.{module.name}.adapter").ADAPTERS


ADAPTERS: Final[Mapping[str, Adapter]] = MappingProxyType(
    {adapter.name: adapter for adapter in sorted(_find_adapters(), key=lambda adapter: adapter.name)}
)


def adapter_for(name: str) -> Adapter:
    """Return the adapter of an agent.

    Raises:
        AgentMissingError: No agent has this name.
    """
    try:
        return ADAPTERS[name]
    except KeyError:
        raise AgentMissingError(
            f"`{name}` is not an agent.", remedy=f"Choose one of: {', '.join(ADAPTERS)}."
        ) from None


_SYSTEM_SETTINGS: Final = {"claude": "/etc/claude-code", "codex": "/etc/codex", "gemini": "/etc/gemini-cli"}
"""The folders in which a machine's owner may log all users in."""
_OTHER_LOGIN: Final = re.compile(rb"api_?key|auth|provider|\"env\"", re.IGNORECASE)
"""The words of settings that may log a CLI in without its usual login."""


def usable_agents(machine: Machine, worktree: Path) -> tuple[str, ...]:
    """Return the names of the agents that can be used on this machine."""
    return tuple(name for name in ADAPTERS if _obstacle(name, machine, worktree) is None)


def check_usable(agent: str, machine: Machine, worktree: Path) -> None:
    """Raise an error if an agent cannot be used on this machine.

    Raises:
        AgentMissingError: The agent's program was not found; the remedy names the usable agents.
        AgentError: The agent cannot work here, or certainly has no login; the remedy says what to change.
    """
    obstacle = _obstacle(agent, machine, worktree)
    if isinstance(obstacle, AgentMissingError):
        others = ", ".join(usable_agents(machine, worktree)) or "none"
        remedy = f"{obstacle.remedy} Agents that the worker can use now: {others}."
        raise AgentMissingError(obstacle.message, remedy=remedy) from obstacle
    if obstacle is not None:
        raise obstacle


def seen_login(adapter: Adapter, host: Machine) -> str | None:
    """Return the variable or the file that looks like a CLI's login; `None` if nothing does."""
    facts = adapter.capabilities
    variable = next((name for name in facts.login_variables if host.env.get(name)), None)
    if variable is not None or not facts.login_files:
        return variable
    login = locate(adapter, host, facts.login_files[0])
    if not login.is_file():
        return None
    return str(login) if host.env.get(facts.home[0]) else facts.login_files[0]


def _obstacle(agent: str, machine: Machine, worktree: Path) -> AgentError | None:
    adapter = adapter_for(agent)
    try:
        adapter.invocation(Turn(prompt="", worktree=worktree), machine)
    except AgentError as error:
        return error
    return _lack_of_login(adapter, machine)


def _lack_of_login(adapter: Adapter, machine: Machine) -> AgentError | None:
    """Return an error if a CLI is certainly not logged in; otherwise `None`."""
    facts = adapter.capabilities
    if not facts.needs_login or not facts.login_files or seen_login(adapter, machine) is not None:
        return None
    further = f"SEPTET_{adapter.name.upper().replace('-', '_')}_LOGINS"
    is_told = bool(select_variables(machine.env, adapter.login)) or bool(machine.env.get(further))
    if is_told or adapter.name == "opencode" or _may_log_in(adapter, machine):
        return None
    ways = f"log in with `{adapter.program}` as its user, or set {' or '.join(facts.login_variables)} there"
    return AgentError(
        f"{adapter.name} is not logged in where the worker runs.",
        remedy=f"Where the worker (`septet up`) runs, {ways}, and start the worker again if you have set one.",
    )


def _may_log_in(adapter: Adapter, machine: Machine) -> bool:
    """Return whether a CLI's settings, or settings in `/etc`, may log the CLI in."""
    if adapter.name in _SYSTEM_SETTINGS and Path(_SYSTEM_SETTINGS[adapter.name]).exists():
        return True
    facts = adapter.capabilities
    files = (*facts.login_files[1:], *(each.name for each in facts.settings))
    return any(_OTHER_LOGIN.search(read_own_file(adapter, machine, name)[: 1024 * 1024]) for name in files)
