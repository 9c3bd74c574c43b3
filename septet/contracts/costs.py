"""What agents have cost: what is noted of each turn, what a project's history keeps, and what is estimated."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from septet.contracts.amounts import Spending
from septet.contracts.names import Step
from septet.contracts.wire import Wire

MOST_COMPLETED: Final = 200
"""Completed work orders that an estimate can rest on."""
MOST_OPEN: Final = 150
"""Work orders that are not completed, or not yet."""
MOST_TURNS: Final = 12
"""Of one work order that are told apart; those before are one sum for each step."""
MOST_WEEKS: Final = 53
MOST_ROWS: Final = 2000
MOST_NOTES: Final = 200
"""In one message."""
MOST_TOGETHER: Final = 200
"""Histories that are read for one estimate."""
EARLIER: Final = "earlier"
"""Stands for the weeks, agents, models and turns that are not told apart any more."""
COSTS: Final = "costs"
PLAN_STEPS: Final = frozenset({Step.CLASSIFY_ISSUE.value, Step.BUILD_PLAN.value, Step.FIND_PLAN_FILE.value})
"""Those of the planner."""
SUMMARY: Final = "summarise_session"
"""What the question for a summary of a lane's session is called, beside the steps."""

_SINCE: Final = r"^([0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])|[0-9]{1,4}[dw])?$"
Since = Annotated[str, WithJsonSchema({"type": "string", "pattern": _SINCE})]
"""An ISO week such as `2026-W40`, or an age such as `4w` or `30d`; or empty. `first_week` reads it."""


def costs_id(task_queue: str, project: str) -> str:
    """Return the id of the workflow that keeps what a project's work orders have cost."""
    return f"{task_queue}-{COSTS}/{project}"


class CostNote(Wire):
    """What a turn has used up to now: a later note of the same turn counts by what is more in it."""

    project: str = ""
    order_id: str
    key: str
    """A digest of the turn's own key."""
    step: str
    agent: str
    login: str = ""
    """The name of the further login that it had; empty for the worker's own."""
    model: str = ""
    """Empty where the agent's own default was taken, and its CLI does not name it."""
    asked_model: str = ""
    """The model that the work order asks for; empty where it asks for none."""
    use: Spending = Spending()
    week: str = ""
    """The ISO week in which it was noted: `2026-W48`."""
    completes: bool = False
    """Whether the work order has its pull request with it."""
    plan_bytes: int = 0
    """The size of its plan, known with the last turn."""
    of_pipeline: bool = False
    """Whether the turn was one in a lane of a pipeline."""


class CostNotes(Wire):
    """Notes of one project."""

    notes: tuple[CostNote, ...] = ()


class TurnCost(Wire):
    """One turn of a work order."""

    key: str
    step: str
    use: Spending = Spending()


class OrderCosts(Wire):
    """What one work order has cost so far, by turn."""

    order_id: str
    agent: str = ""
    planner: str = ""
    """The agent that has planned it; empty where that is not known apart."""
    model: str = ""
    """The one that the work order asks for."""
    is_mixed: bool = False
    """Whether several agents have taken turns at planning it, or at the rest up to its pull request."""
    turns: tuple[TurnCost, ...] = ()
    plan_bytes: int = 0
    is_completed: bool = False
    of_pipeline: bool = False

    @property
    def agents(self) -> tuple[str, str]:
        """The one that has planned it, and the one that has done the rest."""
        return self.planner or self.agent, self.agent

    @property
    def by_step(self) -> dict[str, Spending]:
        """What each step used, all its turns together."""
        sums: dict[str, Spending] = {}
        for turn in self.turns:
            sums[turn.step] = sums.get(turn.step, Spending()).plus(turn.use)
        return sums


class CostRow(Wire):
    """What was used in one week by one step with one agent, login and model."""

    week: str
    step: str
    agent: str
    model: str = ""
    login: str = ""
    use: Spending = Spending()


class CostHistory(Wire):
    """What a project's work orders have cost: all that its workflow knows."""

    project: str
    rows: tuple[CostRow, ...] = ()
    completed: tuple[OrderCosts, ...] = ()
    """The last ones, oldest first."""
    open: tuple[OrderCosts, ...] = ()
    """Those that are not completed, or not yet; the one that was noted last is the last."""


class Interval(Wire):
    """Where an amount will be found in eight of ten cases, and its middle."""

    low: float
    middle: float
    high: float


class Amounts(Wire):
    """An estimate in each unit."""

    usd: Interval | None = None
    """`None` where not all agents of these work orders told their cost."""
    tokens: Interval
    minutes: Interval
    """Of agents' processes."""


class Estimate(Wire):
    """What a work order, or a pipeline of them, will cost, by those before."""

    is_known: bool = False
    orders: int = 0
    """Completed work orders that it rests on; where it is not known, those that there are."""
    issues: int = 1
    """How many issues it is for: of a pipeline those that have no result yet; 0 where that is not known."""
    remaining: Amounts | None = None
    """All that is still to come: at the start the whole work order, at the plan gate what follows the plan."""
    steps: Mapping[str, Amounts] = Field(default_factory=dict)
    all_projects: bool = False
    """Whether it rests on other projects too, because this one has too few."""
    by_plan: bool = False
    """Whether the size of the plan was taken into account."""
    of_pipelines: bool = False
    """Whether it rests on work orders of pipelines alone, whose agents share sessions."""
    text: str = ""
    """In words, as each face says it."""


class CostGroup(Wire):
    """What was used in all by one project, step, agent, login, model or week."""

    name: str
    use: Spending = Spending()
