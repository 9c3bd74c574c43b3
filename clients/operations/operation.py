"""The class `Operation`, from which HTTP routes and MCP tools are made, and the inputs of operations."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Final, Literal, get_type_hints

from pydantic import ConfigDict, Field, StringConstraints

from septet.budgets.account import BudgetName, LimitCall
from septet.contracts.amounts import BudgetText
from septet.contracts.decisions import FINDINGS_NAMED, FindingId, RetryCall, Sha256, Who, Words
from septet.contracts.replies import Reply
from septet.contracts.wire import StrictWire, Wire
from septet.pipelines.inputs import IssueId

After = Annotated[str, Field(description="The `next` of the page before; the first page when absent.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="The most rows to return.")]
FewRows = Annotated[int, Field(ge=1, le=500, description="The most rows to return.")]
"""The most rows that an agent may request: few, because an agent's context is small."""


class CancelBody(StrictWire):
    """The person who decides, and the reason."""

    who: Who = ""
    """The name of the person who decides, for the history; for a tool, the agent's name when absent."""
    why: Words = ""
    """The reason, as the history shows it."""


class PlanBody(CancelBody):
    """The plan that a decision is about, the person who decides, and the reason."""

    plan_sha256: Sha256 | None = None
    """The SHA-256 of the plan that you read, as the work order has it: a decision on another plan is refused. The
    plan that waits now when absent."""


class ApproveBody(PlanBody):
    """The approval of a plan, or of findings in the work, but not of both."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"findings": {"maxItems": 0}}},
                {"properties": {"plan_sha256": {"type": "null"}}},
            ]
        }
    )

    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """Ids of the `findings` that may be pushed: no keys, and protected paths that a person allows."""


class RejectBody(PlanBody):
    """The rejection of a plan with feedback, or the request that the agent removes the findings in the work."""

    feedback: Annotated[Words, StringConstraints(min_length=1)]
    """Your feedback for the planner."""


class AddBody(StrictWire):
    """The amount by which an agent raises a budget."""

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
    """The limit of a budget, or the amount by which the limit is raised."""

    budget: BudgetName
    """The budget: `day`, `project/NAME`, `pipeline/ID`, or the id of a work order."""


class RaiseBody(LimitBody):
    """The amount by which a budget is raised."""

    expected: BudgetText | None = None
    """The limit as you saw it: nothing is added to another limit, so that a raise that is sent twice adds once.
    When absent, the amount is added in any case."""


class RestoreBody(StrictWire):
    """The snapshot to restore."""

    snapshot: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,200}$")]
    """The snapshot's name, as the list of rescues has it."""


class IssueBody(CancelBody):
    """The person who decides about one issue, and the reason, which the planner reads for `replan`."""

    issue_id: IssueId


NO_REASON: Final = CancelBody()
WAITING_PLAN: Final = ApproveBody()
FAILED_STEP: Final = RetryCall()


Effect = Literal["reads", "adds", "ends", "restores"]
"""What a tool does: it changes nothing, starts work that costs money, ends work, or makes a folder."""
OrderId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$"),
    Field(description="The task's id, such as wo-42, as `board`, `run` and `create_task` return it."),
]
PipelineId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,40}$"),
    Field(description="The pipeline's id, as `list_pipelines` and `create_pipeline` return it."),
]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: a function with its HTTP route, its MCP tool, or both.

    The HTTP reference shows the first paragraph of the function's docstring; agents read the whole docstring. An
    argument whose type is a model is the body of an HTTP request. A tool takes the model's fields instead.
    """

    run: Callable[..., Awaitable[Any]]
    route: str = ""
    """The method and the path of the HTTP route; empty for an operation without a route in the table."""
    tag: str = ""
    """The section of the HTTP reference."""
    may_miss: bool = True
    """Whether the route may answer 404, because what the request names may not exist."""
    creates: bool = False
    tool: str = ""
    """The name of the agents' tool; empty for an operation without a tool."""
    effect: Effect = "reads"
    for_tool: Mapping[str, Any] = field(default_factory=dict)
    """Types and defaults that are different in the tool, by argument or field; `None` omits an argument."""
    before_tool: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    """The function that changes an agent's arguments before they are parsed."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def text(self) -> str:
        """The docstring of the function."""
        return cleandoc(self.run.__doc__ or "")

    @property
    def arguments(self) -> list[Parameter]:
        """The arguments of the function after `operations`, with their types."""
        types = get_type_hints(self.run, include_extras=True)
        _, *others = signature(self.run).parameters.values()
        return [each.replace(annotation=types[each.name]) for each in others]

    @property
    def reply(self) -> type[Reply]:
        """The type of the reply."""
        reply: type[Reply] = get_type_hints(self.run)["return"]
        return reply


def is_body(argument: Parameter) -> bool:
    """Return whether an argument is the body of an HTTP request: its type is a model."""
    return isinstance(argument.annotation, type) and issubclass(argument.annotation, Wire)
