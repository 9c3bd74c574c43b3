"""The costs of agents: notes about turns, the history of a project, and estimates."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from septet.contracts.amounts import Spending
from septet.contracts.names import Step
from septet.contracts.wire import Wire

MOST_COMPLETED: Final = 200
"""The most completed work orders in a history."""
MOST_OPEN: Final = 150
"""The most work orders without a pull request in a history."""
MOST_TURNS: Final = 12
"""The most turns of one work order in a history; earlier turns are added up by step."""
MOST_WEEKS: Final = 53
MOST_ROWS: Final = 2000
MOST_NOTES: Final = 200
"""The most notes in one message."""
MOST_TOGETHER: Final = 200
"""The most histories that one estimate reads."""
EARLIER: Final = "earlier"
"""The name of the sum that replaces old weeks, agents, models or turns."""
COSTS: Final = "costs"
PLAN_STEPS: Final = frozenset({Step.CLASSIFY_ISSUE.value, Step.BUILD_PLAN.value, Step.FIND_PLAN_FILE.value})
"""The names of the steps in which the planner works."""
SUMMARY: Final = "summarise_session"
"""The name, in place of a step's, of the turn that summarises a lane's session."""

_SINCE: Final = r"^([0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])|[0-9]{1,4}[dw])?$"
Since = Annotated[str, WithJsonSchema({"type": "string", "pattern": _SINCE})]
"""An ISO week such as `2026-W40`, or an age such as `4w` or `30d`; or empty. `first_week` parses the text."""


def costs_id(task_queue: str, project: str) -> str:
    """Return the id of the workflow with a project's cost history."""
    return f"{task_queue}-{COSTS}/{project}"


class CostNote(Wire):
    """What a turn has used up to now; of a later note for the same turn, only the increase counts."""

    project: str = ""
    order_id: str
    key: str
    """A digest of the turn's own key."""
    step: str
    agent: str
    login: str = ""
    """The name of the further login that the agent used; empty for the worker's own login."""
    model: str = ""
    """The model; empty for the agent's default model if the CLI does not name the model."""
    asked_model: str = ""
    """The model that the work order names; empty if the work order names no model."""
    use: Spending = Spending()
    week: str = ""
    """The ISO week of the note: `2026-W48`."""
    completes: bool = False
    """Whether the turn completes the work order with its pull request."""
    plan_bytes: int = 0
    """The size of the plan in bytes; only the note of the last turn has the size."""
    of_pipeline: bool = False
    """Whether the turn ran in a lane of a pipeline."""


class CostNotes(Wire):
    """The notes on turns of one project's work orders, in one message."""

    notes: tuple[CostNote, ...] = ()


class TurnCost(Wire):
    """The use of one turn of a work order."""

    key: str
    step: str
    use: Spending = Spending()


class OrderCosts(Wire):
    """The costs of one work order, by turn."""

    order_id: str
    agent: str = ""
    planner: str = ""
    """The agent that planned; empty if the planner is not recorded separately."""
    model: str = ""
    """The model that the work order names."""
    is_mixed: bool = False
    """Whether several agents worked on the plan, or several on the later steps."""
    turns: tuple[TurnCost, ...] = ()
    plan_bytes: int = 0
    is_completed: bool = False
    of_pipeline: bool = False

    @property
    def agents(self) -> tuple[str, str]:
        """The planning agent, and the agent of all other steps."""
        return self.planner or self.agent, self.agent

    @property
    def by_step(self) -> dict[str, Spending]:
        """The use of each step; the keys are the steps."""
        sums: dict[str, Spending] = {}
        for turn in self.turns:
            sums[turn.step] = sums.get(turn.step, Spending()).plus(turn.use)
        return sums


class CostRow(Wire):
    """The use in one week, by one step, with one agent, login and model."""

    week: str
    step: str
    agent: str
    model: str = ""
    login: str = ""
    use: Spending = Spending()


class CostHistory(Wire):
    """A project's costs, recorded by one workflow."""

    project: str
    rows: tuple[CostRow, ...] = ()
    completed: tuple[OrderCosts, ...] = ()
    """The latest completed work orders, oldest first."""
    open: tuple[OrderCosts, ...] = ()
    """Work orders without a pull request; the work order of the latest note is the last."""


class Interval(Wire):
    """A median, and an interval that contains the real amount in eight of ten cases."""

    low: float
    middle: float
    high: float


class Amounts(Wire):
    """Estimated US dollars, tokens and minutes."""

    usd: Interval | None = None
    """The US dollars; `None` if too few agent runs reported their cost."""
    tokens: Interval
    minutes: Interval
    """The running time of agents' processes."""


class Estimate(Wire):
    """The expected cost of a work order or a pipeline, estimated from earlier work orders."""

    is_known: bool = False
    orders: int = 0
    """The number of completed work orders that are similar; if there are too few of them, the cost is not
    estimated."""
    issues: int = 1
    """The number of issues that the estimate covers: for a pipeline, the issues without a result; 0 if unknown."""
    remaining: Amounts | None = None
    """The remaining cost: at the start, the cost of the whole work order; at the plan gate, the cost of the steps
    after the plan."""
    steps: Mapping[str, Amounts] = Field(default_factory=dict)
    all_projects: bool = False
    """Whether the estimate uses other projects too, because this project has too few work orders."""
    by_plan: bool = False
    """Whether the estimate considers the size of the plan."""
    of_pipelines: bool = False
    """Whether the estimate uses only work orders of pipelines, whose agents share sessions."""
    text: str = ""
    """The estimate in words."""


class CostGroup(Wire):
    """A sum of costs: of one project, step, agent, login, model or week."""

    name: str
    use: Spending = Spending()
