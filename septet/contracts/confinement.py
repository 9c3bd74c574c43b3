"""What people are told of agents that no sandbox confines, on every face in the same words."""

from collections.abc import Mapping
from typing import Final

UNCONFINED: Final[Mapping[str, str]] = {
    "none": "agents ran without a sandbox. `septet doctor` on their host says why.",
}
"""By what confined an agent, as its run's record has it."""
