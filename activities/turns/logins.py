"""The logins that a host has for its agents: the worker's own, and the further ones that the settings name."""

import hashlib
from typing import Final

import structlog

from activities.host.host import Host
from septet.agents.clis.adapter import Adapter
from septet.agents.clis.named_logins import NamedLogin, read_login
from septet.agents.clis.registry import adapter_for
from septet.errors import InvalidInputError

_DIGEST_LENGTH: Final = 24

_log = structlog.get_logger()


def read_logins(host: Host, adapter: Adapter) -> tuple[NamedLogin, ...]:
    """Return an agent's logins, in order: the worker's own, and further ones that can be read now."""
    logins = [own_login(host)]
    for name, path in host.settings.agent_logins.get(adapter.name, {}).items():
        try:
            logins.append(read_login(adapter, host.agents, name, path))
        except InvalidInputError as error:
            _log.warning("login_not_read", agent=adapter.name, error=error.message)
    return tuple(logins)


def own_login(host: Host) -> NamedLogin:
    """Return the worker's own login of each agent."""
    return NamedLogin("", host.agents)


def check_logins(host: Host) -> None:
    """Check that each further login can be used; their keys are masked from then on.

    Raises:
        AgentMissingError: The settings name logins of an agent that does not exist.
        InvalidInputError: A login cannot be used; the message names the login and the reason.
    """
    for agent, logins in host.settings.agent_logins.items():
        for name, path in logins.items():
            read_login(adapter_for(agent), host.agents, name, path)


def login_digest(host: Host, adapter: Adapter, login: NamedLogin, model: str | None) -> str:
    """Return a digest that names a login: of its keys, equal on all hosts; without keys, of this host and login.

    Args:
        host: The host.
        adapter: The CLI.
        login: One of its logins.
        model: The requested model: if a CLI knows several providers, only the keys of that model's provider count.
    """
    provider = adapter.provider_of(login.machine, model)
    own = [host.id, str(login.folder or login.name)] if login.name else [host.id]
    parts = login.identity(adapter, provider) or own
    named = [provider] if provider else []
    return hashlib.sha256("\0".join((adapter.name, *named, *parts)).encode()).hexdigest()[:_DIGEST_LENGTH]
