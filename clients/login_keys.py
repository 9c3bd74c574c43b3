"""Mask the keys in the agent CLIs' own files wherever output shows agents' words, as the worker does."""

from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import ADAPTERS
from septet.agents.runs.homes import hide_keys_of
from septet.settings import Settings


def hide_login_keys(settings: Settings) -> None:
    """Mask the keys that the files contain now; call it again after a login is refreshed."""
    machine = Machine(settings.environ, settings.agent_programs)
    for adapter in ADAPTERS.values():
        hide_keys_of(adapter, machine)
