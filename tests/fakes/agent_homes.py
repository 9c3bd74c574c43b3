"""The home of a confined agent, on a machine whose files are all below one folder."""

from pathlib import Path

from septet.agents.clis.adapter import Machine
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.homes import AgentHome, Homes
from septet.agents.runs.logins import Logins


def home_of(root: Path, agent: str, order_id: str = "wo-1") -> AgentHome:
    """Return the home of a work order; the user's home is `root/user`, and `root/state` is the state directory."""
    homes = Homes(root / "state" / "homes", Logins(root / "state" / "logins"))
    return homes.of(order_id, adapter_for(agent), Machine({"HOME": str(root / "user")}))
