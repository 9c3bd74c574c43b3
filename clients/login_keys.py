"""The keys in the agent CLIs' own files: what shows an agent's words masks them, as the worker does."""

from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import ADAPTERS
from septet.agents.homes.home import hide_keys_of
from septet.settings import Settings


def hide_login_keys(settings: Settings) -> None:
    """Have them masked that the files hold now; of a login that is refreshed later, another call tells."""
    machine = Machine(settings.environ, settings.agent_programs)
    for adapter in ADAPTERS.values():
        hide_keys_of(adapter, machine)
