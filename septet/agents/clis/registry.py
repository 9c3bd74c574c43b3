"""The agents by name. A new CLI is a folder here with a module `adapter` that has its adapters in `ADAPTERS`."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from septet.agents import clis
from septet.agents.clis.adapter import Adapter
from septet.errors import AgentMissingError


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
