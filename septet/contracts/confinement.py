"""What people are told of agents that no sandbox confines, on every face in the same words."""

from collections.abc import Mapping
from typing import Final

UNCONFINED: Final[Mapping[str, str]] = {
    "none": (
        "agents ran without a sandbox. To confine them, install bubblewrap (`apt-get install bubblewrap`); "
        "`septet doctor` says what else is missing."
    ),
}
"""By what confined an agent, as its run's record has it."""
