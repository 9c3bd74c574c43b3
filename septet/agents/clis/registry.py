"""All agents by name, the agents that can be used on a machine, and the further logins of an agent.

A new CLI is a folder here with a module `adapter` that has its adapters in `ADAPTERS`, and a name in
`septet.contracts.names.AGENTS`. `SEPTET_<AGENT>_LOGINS` names further logins as `NAME=PATH`: a file with variables
of the CLI, one `NAME=value` in each line, or a folder that is a CLI's home with a login.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from septet.agents import clis
from septet.agents.clis.adapter import Adapter, Machine, Turn, select_variables
from septet.agents.clis.own_files import locate, read_own_file
from septet.errors import AgentError, AgentMissingError, InvalidInputError
from septet.system.keys import is_key, key_values
from septet.system.masking import hide


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


@dataclass(frozen=True, slots=True)
class NamedLogin:
    """A login of a CLI, and the environment in which the CLI uses this login."""

    name: str
    """The name; empty for the worker's own login."""
    machine: Machine
    folder: Path | None = None
    """The folder of a further login; `None` for a login in a file of variables, and for the worker's own login."""

    def identity(self, adapter: Adapter, provider: str = "") -> tuple[str, ...]:
        """Return the login's keys for a provider, each as `NAME=key`, to compare logins; empty without keys."""
        keys = adapter.keys_of(self.machine, provider)
        return tuple(f"{name}={keys[name]}" for name in sorted(keys))


def read_login(adapter: Adapter, machine: Machine, name: str, path: Path) -> NamedLogin:
    """Return a further login of a CLI, from a file of variables or a folder, and mask its keys from now on.

    Raises:
        InvalidInputError: The login cannot be used; the message says why.
    """
    path = path.expanduser().absolute()
    own_keys = {
        each for each, value in select_variables(machine.env, adapter.login).items() if is_key(each, value)
    }
    keyless = {each: value for each, value in machine.env.items() if each not in own_keys}
    if path.is_dir():
        variable = adapter.capabilities.home[0]
        if not variable:
            message = (
                f"The login {name} of {adapter.name} is a folder, and {adapter.name} takes no other than its own."
            )
            raise InvalidInputError(message, remedy="Name a file with its variables instead.")
        return NamedLogin(name, replace(machine, env={**keyless, variable: str(path)}), path)
    variables = _read_variables(name, path)
    foreign = [each for each in variables if not select_variables({each: ""}, adapter.login)]
    if foreign or not all(variables.values()) or not variables:
        what = f"{foreign[0]}, which {adapter.name} does not take" if foreign else "no variable with a value"
        known = ", ".join(adapter.login) or "none"
        raise InvalidInputError(
            f"The login {name} of {adapter.name}, {path}, has {what}.", remedy=f"Write variables of it: {known}."
        )
    hide(key_values(variables))
    return NamedLogin(name, replace(machine, env={**keyless, **variables}))


def _read_variables(name: str, path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"The login {name} cannot be read from {path}: {why}."
        raise InvalidInputError(message, remedy="Name a file that the worker can read, or a folder.") from error
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {variable.strip(): value.strip().strip("\"'") for variable, _, value in pairs}


_SYSTEM_SETTINGS: Final = {"claude": "/etc/claude-code", "codex": "/etc/codex", "gemini": "/etc/gemini-cli"}
"""The folders in which a machine's owner may have stored a login for all users."""
_OTHER_LOGIN: Final = re.compile(rb"api_?key|auth|provider|\"env\"", re.IGNORECASE)
"""The words in settings that suggest a login other than the CLI's usual one."""


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
    """Return whether a CLI's settings, or settings in `/etc`, may contain a login."""
    if adapter.name in _SYSTEM_SETTINGS and Path(_SYSTEM_SETTINGS[adapter.name]).exists():
        return True
    facts = adapter.capabilities
    files = (*facts.login_files[1:], *(each.name for each in facts.settings))
    return any(_OTHER_LOGIN.search(read_own_file(adapter, machine, name)[: 1024 * 1024]) for name in files)
