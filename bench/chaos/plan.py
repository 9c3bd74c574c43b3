"""What a trial consists of: how many work orders, and which kills."""

from dataclasses import dataclass
from typing import Literal, get_args

from septet.contracts.names import Sessions

Kind = Literal[
    "worker", "restart", "supervisor", "agent", "tool", "proxy", "server", "partition", "hang", "slow-disk",
    "upgrade", "host", "stall", "worker-rolling",
]  # fmt: skip
"""SIGKILL of a worker, and SIGTERM; SIGKILL of a supervisor, of an agent, of a process that is an agent's tool, of
the proxy that is a guest's one way out, of the server; a worker that stands still for longer than its heartbeats
may be missing; work orders on a remote that accepts and never answers; a disk that takes long to write; a worker
of another build, which becomes current; the loss of a state directory with all its processes;
a supervisor that stands still for a while;
and a worker that ends every five seconds, by SIGKILL and SIGTERM in turn."""
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
"""Kinds that end an agent that they aim at."""
HARMLESS: frozenset[Kind] = frozenset({"worker", "restart", "worker-rolling", "proxy", "stall"})
"""Where nothing else strikes, no agent is started a second time."""
DEATHS_BORNE = 2
"""Deaths of one step's agents that a work order bears: after the first it is resumed, after the second run anew;
after a third the step would fail with a rescue, as it should."""
HEARTBEAT_SECONDS = 30.0
"""The time-out of heartbeats on both sides, a quarter of Septet's own: a partition is longer."""
ROLLING_SECONDS = 5.0
"""Between two ends of the worker."""
BUDGET = "1000Mtok"
"""Of each work order, where a trial names no other: it is never used up, and its account counts every turn."""
ROLLING_STEP_SECONDS = 10.0
"""An agent that outlives a worker's start is adopted; one that does not is read."""


@dataclass(frozen=True)
class Plan:
    """One trial."""

    runs: int = 20
    """Work orders."""
    at_once: int = 8
    seed: int = 7
    kinds: tuple[Kind, ...] = USUAL
    sessions: Sessions = "separate"
    """Of each work order; where its steps share two, their processes are hit between turns too."""
    budget: str = BUDGET
    """Of each work order, such as `5ktok`; it is raised by as much each time that it is used up."""
    every_seconds: float = 1.5
    """Between two kills, on average."""
    step_seconds: float = 5.0
    """What an agent works in a step."""
    partition_seconds: float = 35.0
    """Longer than the time-out of heartbeats."""
    partitions: int = 2
    """The most in one trial: each takes so long."""
    hanging: int = 8
    """Work orders that begin to hang on a remote at a time."""
    slow_seconds: float = 10.0
    """How long a disk is slow."""
    kills_at_most: int | None = None
    """The baseline gets as many as Septet did: under more of them it would never come to an end."""
    minutes: float | None = None
    """Start no work order after so long."""
    keep: bool = False
    """Leave the folder."""
    patience_seconds: float = 300.0
    """For a work order, from its start to its close."""

    @property
    def uses_budgets_up(self) -> bool:
        """Whether work orders are to reach their budgets."""
        return self.budget != BUDGET

    @property
    def rolling(self) -> bool:
        """Whether only the worker dies, and all the time."""
        return self.kinds == ("worker-rolling",)
