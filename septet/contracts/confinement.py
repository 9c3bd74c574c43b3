"""What people are told of agents that no sandbox confines, on every face in the same words."""

from collections.abc import Mapping
from typing import Final

OF_USERS: Final = (
    "each run is a separate user with the machine's network: it reaches everything that listens on this machine, "
    "also on abstract sockets, and reads what every user may read"
)
"""What is not promised where each run is a user of its own."""
UNCONFINED: Final[Mapping[str, str]] = {
    "none": "agents ran without a sandbox. `septet doctor` on their host says why.",
    "uid": f"agents ran without a sandbox; {OF_USERS}.",
}
"""By what confined an agent, as its run's record has it."""
