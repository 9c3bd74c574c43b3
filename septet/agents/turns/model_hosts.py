"""The hosts of a CLI's model API: those that it asks by itself, and those that the worker's settings name."""

from collections.abc import Mapping
from contextlib import suppress

from septet.agents.clis.adapter import FOR_EVERY_AGENT, Adapter, Invocation, Machine, select_variables
from septet.agents.clis.own_files import locate
from septet.agents.guest.network import FIRST_MODEL_PORT, ModelKey, NamedHost, hosts_in, worthless_key

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


def model_keys(adapter: Adapter, env: Mapping[str, str]) -> tuple[ModelKey, ...]:
    """Return the model APIs of a CLI whose keys are in its environment, and whose address it can be told."""
    found = []
    for number, variables in enumerate(adapter.capabilities.model_variables):
        address = env.get(variables.address) or variables.usual_address
        keys = tuple(env.get(name, "") for name in variables.keys)
        if hosts_in([address]) and any(keys):
            found.append(ModelKey(FIRST_MODEL_PORT + number, address, keys))
    return tuple(found)


def without_keys(adapter: Adapter, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as a guest gets it whose keys stay outside, with its models at ports of its own."""
    inside, models = dict(env), {each.port: each for each in model_keys(adapter, env)}
    for number, variables in enumerate(adapter.capabilities.model_variables):
        model = models.get(FIRST_MODEL_PORT + number)
        if model is not None:
            inside[variables.address] = model.address_inside
            for index, name in enumerate(variables.keys):
                inside |= {name: worthless_key(index)} if env.get(name) else {}
    return inside
