"""The operations on budgets, costs, pipelines and intakes, for programs and agents."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from pydantic import Field

from clients.operations.operation import (
    NO_REASON,
    AddBody,
    After,
    CancelBody,
    FewRows,
    IssueBody,
    Limit,
    LimitBody,
    Operation,
    PipelineId,
    RaiseBody,
)
from clients.operations.operations import Operations
from clients.pipelines.client import PIPELINES_AT_ONCE, PipelineDecision
from clients.temporal.budgets import BUDGETS_AT_ONCE
from septet.budgets.account import BudgetName, BudgetReply, BudgetsReply, LimitCall, RaiseCall, RaiseReply
from septet.contracts.costs import Since
from septet.contracts.intake import IntakeId, IntakeInput, IntakeRemovedReply, IntakeReply, IntakesReply
from septet.contracts.names import CostKey
from septet.contracts.replies import CostsReply
from septet.pipelines.inputs import PipelineInput
from septet.pipelines.views import PipelineReply, PipelinesReply, ReportReply, ResultsReply

_ISSUE: Final = "The issue's id in the pipeline; only for `skip` and `replan`."
Budget = Annotated[
    BudgetName, Field(description="`day`, `project/NAME`, `pipeline/ID`, or the id of a work order.")
]


async def get_budgets(operations: Operations, limit: Limit = BUDGETS_AT_ONCE, after: After = "") -> BudgetsReply:
    """Show the budgets, those of the day and of projects first: what was used, and which tasks wait.

    A task that waits for a budget names the budget in `task.budget`. If there are more budgets, the answer has
    `next`: call again with it as `after`.
    """
    return await operations.budgets.list(after=after, limit=limit)


async def get_budget(operations: Operations, budget: Budget) -> BudgetReply:
    """Show one budget: its limit, what was used by step and day, and who waits."""
    return await operations.budgets.show(budget)


async def set_budget(operations: Operations, call: LimitBody) -> BudgetReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room."""
    limit = LimitCall(limit=call.limit, step=call.step, who=call.who)
    return await operations.budgets.set(call.budget, limit)


async def raise_budget(operations: Operations, call: RaiseBody) -> RaiseReply:
    """Raise a budget by an amount; tasks that wait for it continue.

    If the limit is not the `expected` one, nothing is added, and `is_raised` is false.
    """
    amount = RaiseCall(limit=call.limit, step=call.step, who=call.who, expected=call.expected or "")
    return await operations.budgets.raise_limit(call.budget, amount)


async def add_to_budget(operations: Operations, call: AddBody) -> RaiseReply:
    """Raise a budget by an amount, so that the tasks that wait for it continue.

    A higher budget lets agents cost more: ask a person first.
    """
    amount = RaiseCall(limit=call.amount, step=call.step, who=call.who, expected=call.expected or "")
    return await operations.budgets.raise_limit(call.budget, amount)


async def get_costs(
    operations: Operations,
    by: Annotated[CostKey, Field(description="What to group by.")] = "project",
    since: Annotated[
        Since, Field(description="Count from this week on: 2026-W40, 4w or 30d; all when absent.")
    ] = "",
    project: Annotated[
        str, Field(max_length=200, description="Only this project, such as o/r; all when absent.")
    ] = "",
) -> CostsReply:
    """Show what agents have cost, by project, step, agent, login, model or week: dollars, tokens and minutes.

    The answers of `run` and `create_task` estimate the cost of a new task (`estimate`), and so does `task_detail`
    while its plan waits for approval.
    """
    return await operations.costs.show(by, since, project)


async def create_pipeline(
    operations: Operations,
    order: PipelineInput,
    pipeline_id: Annotated[PipelineId | None, Field(description="Its id; one is made when absent.")] = None,
) -> PipelineReply:
    """Start work on many issues of one repository: one agent plans them ahead, others carry the plans out.

    Name the repository, and either `issues` (numbers of its forge, or objects with id, title, body and
    depends_on) or a `label` of its forge. Each issue becomes a task on the board, and gets its own pull request
    unless `one_branch` is set. A pipeline costs money and takes minutes: the answer is the pipeline as it starts,
    with an `estimate` of its cost. Look at it later with `get_pipeline`. Choose an `id` if you might call twice: a
    used id is refused.
    """
    return await operations.for_pipelines.start(order, pipeline_id)


async def get_pipeline(operations: Operations, pipeline_id: PipelineId) -> PipelineReply:
    """Show one pipeline: the state of each issue, with its solution, commit, pull request and reason.

    `pipeline.status` is running, paused, stopping, completed, stopped, failed or cancelled. A completed one may
    have issues that failed or were skipped. `order_id` is an issue's task: see `task_detail` and `logs`. While the
    pipeline is open, `estimate` is what the issues that have no result yet will cost.
    """
    return await operations.for_pipelines.show(pipeline_id)


async def list_pipelines(
    operations: Operations, limit: Limit = PIPELINES_AT_ONCE, after: After = ""
) -> PipelinesReply:
    """List pipelines, open ones first, each with the number of issues in each state.

    If there are more pipelines, the answer has `next`: call again with it as `after`.
    """
    return await operations.pipelines.list(after=after, limit=limit)


async def get_results(operations: Operations, pipeline_id: PipelineId) -> ResultsReply:
    """Show the results of a pipeline's planning and execution, as of now."""
    return await operations.pipelines.results(pipeline_id)


async def get_report(operations: Operations, pipeline_id: PipelineId) -> ReportReply:
    """Show the report on a pipeline, as of now."""
    return await operations.pipelines.report(pipeline_id)


async def pipeline_decide(
    operations: Operations,
    pipeline_id: PipelineId,
    decision: PipelineDecision,
    issue_id: Annotated[str, Field(max_length=20, description=_ISSUE)] = "",
    call: CancelBody = NO_REASON,
) -> PipelineReply:
    """Decide about a pipeline, or about one of its issues.

    `pause`: nothing new starts until `resume`. `stop`: running issues are finished, and no others start. `cancel`:
    all agents are stopped now, and their work is kept. With `issue_id`, `skip`: leave out an issue that is not
    running, and the issues that depend on it; `replan`: plan an issue again before it is implemented, with `why`
    for the planner.
    """
    return await operations.pipelines.decide(pipeline_id, decision, issue_id, call.who, call.why)


async def add_intake(operations: Operations, intake: IntakeInput) -> IntakeReply:
    """Start a work order for each open issue with a label, from now on."""
    return await operations.starting.add_intake(intake)


async def list_intakes(operations: Operations) -> IntakesReply:
    """List the intakes."""
    return await operations.intakes.list()


async def remove_intake(operations: Operations, intake_id: IntakeId) -> IntakeRemovedReply:
    """Take no more issues; work orders that were started continue."""
    return await operations.intakes.remove(intake_id)


def _decision(word: PipelineDecision, text: str) -> Operation:
    """Return the operation that carries out a decision on a whole pipeline; users read `text`."""

    async def decide(
        operations: Operations, pipeline_id: PipelineId, call: CancelBody = NO_REASON
    ) -> PipelineReply:
        return await operations.pipelines.decide(pipeline_id, word, "", call.who, call.why)

    return _row_of(word, text, decide)


def _issue_decision(word: PipelineDecision, text: str) -> Operation:
    """Return the operation that carries out a decision on one issue; users read `text`."""

    async def decide(operations: Operations, pipeline_id: PipelineId, call: IssueBody) -> PipelineReply:
        return await operations.pipelines.decide(pipeline_id, word, call.issue_id, call.who, call.why)

    return _row_of(word, text, decide)


def _row_of(word: str, text: str, decide: Callable[..., Awaitable[PipelineReply]]) -> Operation:
    decide.__name__, decide.__doc__ = word, text
    return Operation(decide, f"POST /pipelines/{{pipeline_id}}/{word}", "pipelines")


_PIPELINE: Final = "/pipelines/{pipeline_id}"
BUDGET_OPERATIONS: Final = (
    Operation(get_budgets, "GET /budgets", "budgets", tool="budgets", for_tool={"limit": None}),
    Operation(get_budget, "GET /budgets/show", "budgets"),
    Operation(set_budget, "POST /budgets/set", "budgets"),
    Operation(raise_budget, "POST /budgets/raise", "budgets"),
    Operation(add_to_budget, tool="raise_budget", effect="adds"),
    Operation(get_costs, "GET /costs", "budgets", may_miss=False, tool="costs"),
    Operation(create_pipeline, tool="create_pipeline", effect="adds"),
    Operation(get_pipeline, f"GET {_PIPELINE}", "pipelines", tool="get_pipeline"),
    Operation(
        list_pipelines, "GET /pipelines", "pipelines", tool="list_pipelines", for_tool={"limit": (FewRows, 20)}
    ),
    Operation(get_results, f"GET {_PIPELINE}/results", "pipelines"),
    Operation(get_report, f"GET {_PIPELINE}/report", "pipelines"),
    Operation(pipeline_decide, tool="pipeline_decide", effect="ends"),
    _decision("pause", "Start nothing new until it is resumed; running issues continue."),
    _decision("resume", "Continue after a pause."),
    _decision("stop", "Finish the running issues and start no others."),
    _decision("cancel", "Stop all agents and running work orders; a rescue keeps the work of each."),
    _issue_decision("skip", "Skip an issue that is not running, and the issues that depend on it."),
    _issue_decision("replan", "Plan an issue again before it is implemented; the planner reads `why`."),
    Operation(add_intake, "POST /intakes", "intakes", may_miss=False, creates=True),
    Operation(list_intakes, "GET /intakes", "intakes", may_miss=False),
    Operation(remove_intake, "DELETE /intakes/{intake_id}", "intakes"),
)
