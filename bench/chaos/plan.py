"""The plan of a trial: the number of work orders, and the kinds of kills."""

from dataclasses import dataclass
from typing import Literal, get_args

from septet.contracts.names import Sessions

Kind = Literal[
    "worker", "restart", "supervisor", "agent", "tool", "proxy", "server", "partition", "hang", "slow-disk",
    "upgrade", "host", "stall", "worker-rolling",
]  # fmt: skip
"""The kinds of fault, in this order: SIGKILL of a worker; SIGTERM of a worker; SIGKILL of a supervisor, of an
agent, of an agent's tool process, of the proxy that is a guest's only way out, and of the server; a worker that is
stopped for longer than its heartbeat time-out; work orders on a remote that accepts connections and never answers;
a disk with slow writes; a worker of another build, which becomes current; the loss of a state directory with all
its processes; a supervisor that is stopped for a while; and a worker that is ended every five seconds, by SIGKILL
and SIGTERM in turn."""
KINDS: tuple[Kind, ...] = get_args(Kind)
USUAL: tuple[Kind, ...] = (
    "worker", "restart", "supervisor", "agent", "tool", "proxy", "server", "partition", "hang", "slow-disk",
    "upgrade",
)  # fmt: skip
WEIGHTS: dict[Kind, int] = {
    "worker": 4, "restart": 3, "supervisor": 4, "agent": 4, "tool": 3, "proxy": 3, "server": 1, "partition": 1,
    "hang": 1, "slow-disk": 1, "upgrade": 1, "host": 1,
    "stall": 4,
}  # fmt: skip
DEADLY: frozenset[Kind] = frozenset({"agent", "supervisor"})
"""The kinds that end the agent at which they are aimed."""
HARMLESS: frozenset[Kind] = frozenset({"worker", "restart", "worker-rolling", "proxy", "stall"})
"""The kinds that cause no second start of an agent."""
DEATHS_BORNE = 2
"""The deaths of a step's agents that a work order survives. After the first the agent is resumed, after the second
it is run anew; after a third the step would correctly fail with a rescue."""
HEARTBEAT_SECONDS = 30.0
"""The time-out of heartbeats on both sides, a quarter of Septet's default: a partition is longer."""
ROLLING_SECONDS = 5.0
"""The seconds between two ends of the worker."""
BUDGET = "1000Mtok"
"""The budget of each work order by default: it is never used up, and its account counts every turn."""
ROLLING_STEP_SECONDS = 10.0
"""The seconds of a step: a longer agent is adopted by the next worker, and a shorter agent's result is read."""


@dataclass(frozen=True)
class Plan:
    """One trial."""

    runs: int = 20
    """The work orders."""
    at_once: int = 8
    seed: int = 7
    kinds: tuple[Kind, ...] = USUAL
    sessions: Sessions = "separate"
    """The sessions of each work order; if its steps share two, their processes are also hit between turns."""
    budget: str = BUDGET
    """The budget of each work order, such as `5ktok`; each time that it is used up, it is raised by as much."""
    every_seconds: float = 1.5
    """The average seconds between two kills."""
    step_seconds: float = 5.0
    """The seconds that an agent works in a step."""
    partition_seconds: float = 35.0
    """The seconds of a partition, longer than the time-out of heartbeats."""
    partitions: int = 2
    """The most partitions in one trial, for each takes long."""
    hanging: int = 8
    """The work orders that begin to hang on a remote at a time."""
    slow_seconds: float = 10.0
    """The seconds for which a disk is slow."""
    kills_at_most: int | None = None
    """The baseline gets as many kills as Septet had: under more it would never end."""
    minutes: float | None = None
    """The minutes after which no work order starts."""
    keep: bool = False
    """Whether the folder stays."""
    patience_seconds: float = 300.0
    """The most seconds of a work order, from its start to its end."""

    @property
    def uses_budgets_up(self) -> bool:
        """Return whether work orders should reach their budgets."""
        return self.budget != BUDGET

    @property
    def rolling(self) -> bool:
        """Return whether only the worker dies, again and again."""
        return self.kinds == ("worker-rolling",)
