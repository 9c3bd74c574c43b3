"""The request to an agent: one turn, and the host's means to run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine, Turn
from septet.agents.homes.home import Homes
from septet.agents.runs.folders import Runs
from septet.agents.runs.records import Payer, RunKey
from septet.agents.sandbox.sandbox import Sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.contracts.budget import Caps
from septet.contracts.limits import Timeouts

_LEAST_USD: Final = 0.000001


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    """What a host runs its agents with."""

    runs: Runs
    supervisors: Supervisors
    host: Machine
    orphan_limit_seconds: float = 1800.0
    """An agent that no attempt follows for so long is ended."""
    pace: Pace = field(default_factory=Pace)
    patience_seconds: float = 30.0
    """For a lock that is held while no run lives: somebody is about to start one, or to leave."""
    login_patience_seconds: float = 180.0
    """For other agents that refresh a login one after the other; each is waited for a minute at the most."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    warm: bool = True
    """Processes may be left running between turns."""
    homes: Homes | None = None
    """The homes of work orders; confined agents have the user's own folders of their CLI when absent."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """What one agent may use, by the names of an order's limits; nothing limits what is not named."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What an attempt wants of an agent."""

    key: RunKey
    order_id: str
    number: int
    """The step's number, for the folder's name."""
    step: str
    """The step's name, for the folder's name too."""
    adapter: Adapter
    turn: Turn
    """The turn; its `resume_id` names the session of a turn that continues another."""
    limits: Timeouts
    runtime: AgentRuntime
    objects: Path | None = None
    """The folder of the mirror's objects that the worktree borrows."""
    caps: Caps = field(default_factory=Caps)
    """What its budgets let the agent use for now."""
    login: str = ""
    """The name of the further login that the agent has; empty for the worker's own."""
    has_fallback: bool = False
    """Another agent may take over."""
    payer: Payer | None = None
    """Whose costs the turn's are; `None` where nobody counts them."""
    is_answer: Callable[[str], bool] = bool
    """Returns whether a result's text answers the prompt."""


def within_caps(request: TurnRequest, caps: Caps) -> TurnRequest:
    """Return a request whose agent is to end where it has used what its budgets let it use for now.

    A process that is kept for further turns has the options of its first one: where dollars are limited none is.
    """
    turn = request.turn
    if caps.usd is not None:
        turn = replace(turn, max_usd=max(caps.usd, _LEAST_USD), warm=False)
    return replace(request, turn=turn, caps=caps)
