"""The inputs of operations: what people and programs give beside the id of a work order or a pipeline."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field, StringConstraints

from septet.contracts.amounts import BudgetText
from septet.contracts.budget import BudgetName, LimitCall
from septet.contracts.decisions import FINDINGS_NAMED, FindingId, RetryCall, Sha256, Who, Words
from septet.contracts.pipeline import IssueId
from septet.contracts.wire import StrictWire

After = Annotated[str, Field(description="The `next` of the page before; the first page when absent.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="The most rows to return.")]
FewRows = Annotated[int, Field(ge=1, le=500, description="The most rows to return.")]
"""An agent's context is small."""


class CancelBody(StrictWire):
    """Whose decision it is, and why."""

    who: Who = ""
    """Who decides, as the history shows it; for a tool, the agent when absent."""
    why: Words = ""
    """The reason, as the history shows it."""


class PlanBody(CancelBody):
    """Which plan is meant."""

    plan_sha256: Sha256 | None = None
    """The SHA-256 of the plan that you read, as the work order has it: a decision on another plan is refused. The
    plan that waits now when absent."""


class ApproveBody(PlanBody):
    """A word for a plan, or for what was found in the work: one of both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"findings": {"maxItems": 0}}},
                {"properties": {"plan_sha256": {"type": "null"}}},
            ],
        }
    )

    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """Ids of the `findings` that may be pushed: no keys, and protected paths that a person allows."""


class RejectBody(PlanBody):
    """What is wrong with a plan, or that the agent is to remove what was found in the work."""

    feedback: Annotated[Words, StringConstraints(min_length=1)]
    """Your feedback for the planner."""


class AddBody(StrictWire):
    """By how much an agent raises a budget."""

    budget: BudgetName
    """`day`, `project/NAME`, `pipeline/ID`, or the id of a task."""
    amount: BudgetText
    """The amount to add, such as 5usd, 2Mtok or 90min."""
    step: Annotated[str, StringConstraints(max_length=40)] = ""
    """The step whose limit is raised; the whole budget when absent."""
    expected: BudgetText | None = None
    """The limit as you saw it: nothing is added to another limit, and `is_raised` is false, so that you can safely
    repeat the call."""
    who: Who = ""
    """Who decides; this agent when absent."""


class LimitBody(LimitCall):
    """A limit, or by how much it is raised."""

    budget: BudgetName
    """The budget: `day`, `project/NAME`, `pipeline/ID`, or the id of a work order."""


class RaiseBody(LimitBody):
    """By how much a budget is raised."""

    expected: BudgetText | None = None
    """The limit as you saw it: nothing is added to another limit, so that a raise that is sent twice adds once.
    When absent, the amount is added in any case."""


class RestoreBody(StrictWire):
    """Which snapshot to restore."""

    snapshot: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,200}$")]
    """The snapshot's name, as the list of rescues has it."""


class IssueBody(CancelBody):
    """Whose decision it is about one issue, and why; for `replan`, the planner reads why."""

    issue_id: IssueId


NO_REASON: Final = CancelBody()
WAITING_PLAN: Final = ApproveBody()
FAILED_STEP: Final = RetryCall()
