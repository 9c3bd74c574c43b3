"""The hosts of a CLI's model API: those that it asks by itself, and those that the worker's settings name."""

from contextlib import suppress

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Adapter, Invocation, Machine, select_variables
from septet.agents.clis.own_files import locate
from septet.agents.guest.network import NamedHost, hosts_in

_HTTPS_PORT = 443


def model_hosts(adapter: Adapter) -> tuple[NamedHost, ...]:
    """Return what a CLI asks of the internet for its model and its login."""
    return tuple(NamedHost(name, _HTTPS_PORT) for name in adapter.capabilities.model_hosts)


def named_model_hosts(adapter: Adapter, host: Machine, invocation: Invocation) -> tuple[NamedHost, ...]:
    """Return what the worker names: in variables that this CLI alone gets, and in what it gets of its settings."""
    usual = select_variables(invocation.env, FOR_EVERY_AGENT)
    texts = [value for name, value in invocation.env.items() if name not in usual]
    for file in adapter.capabilities.settings:
        with suppress(OSError):  # most are not there
            content = locate(adapter, host, file.name).read_bytes()
            texts.append((file.reduce(content) or b"").decode(errors="replace"))
    return hosts_in(texts)
