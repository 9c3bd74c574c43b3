"""The agents by name. A new one is a module and a line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from septet.agents.clis.adapter import Adapter
from septet.agents.clis.claude import CLAUDE, SCRIPTED
from septet.agents.clis.codex import CODEX
from septet.agents.clis.command import COMMAND
from septet.agents.clis.copilot import COPILOT
from septet.agents.clis.gemini import GEMINI
from septet.agents.clis.opencode import OPENCODE
from septet.errors import AgentMissingError

_ADAPTERS: Final[tuple[Adapter, ...]] = (
    CLAUDE,
    CODEX,
    COMMAND,
    COPILOT,
    GEMINI,
    OPENCODE,
    SCRIPTED,
)
ADAPTERS: Final[Mapping[str, Adapter]] = MappingProxyType({adapter.name: adapter for adapter in _ADAPTERS})


def adapter_for(name: str) -> Adapter:
    """Return the adapter of an agent.

    Raises:
        AgentMissingError: There is no agent of that name.
    """
    try:
        return ADAPTERS[name]
    except KeyError:
        raise AgentMissingError(
            f"`{name}` is not an agent.", remedy=f"Choose one of: {', '.join(ADAPTERS)}."
        ) from None
