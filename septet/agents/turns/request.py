"""An attempt's request for one turn of an agent, and what the host provides to run the turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from septet.agents.clis.adapter import Adapter, Machine, Turn
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.records import Payer, RunKey
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.budgets.account import Caps
from septet.contracts.order import Timeouts


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    """What a host provides to run its agents."""

    runs: Runs
    supervisors: Supervisors
    host: Machine
    orphan_limit_seconds: float = 1800.0
    """The longest time that an agent may run while no attempt follows it."""
    pace: Pace = field(default_factory=Pace)
    patience_seconds: float = 30.0
    """The seconds to wait for a writer's lock that is held while no agent runs."""
    login_patience_seconds: float = 180.0
    """The longest wait while other agents refresh a login, each for a minute at most."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    warm: bool = True
    homes: Homes | None = None
    """The homes of work orders; if `None`, agents in a sandbox use their CLI's folders in the user's home."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """The resource limits of one agent, named as in an order to a supervisor; a missing name means no limit."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """An attempt's request for one turn of an agent."""

    key: RunKey
    order_id: str
    number: int
    step: str
    adapter: Adapter
    turn: Turn
    """The turn; if it continues another turn, its `resume_id` names the session."""
    limits: Timeouts
    runtime: AgentRuntime
    objects: Path | None = None
    """The folder with the mirror's git objects, which the worktree borrows."""
    caps: Caps = field(default_factory=Caps)
    login: str = ""
    """The name of the agent's further login; empty for the worker's own login."""
    has_fallback: bool = False
    payer: Payer | None = None
    """The project and work order under which the turn's costs are counted; `None` if they are not counted."""
    is_answer: Callable[[str], bool] = bool
    """The function that returns whether a result's text answers the prompt."""
