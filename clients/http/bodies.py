"""What the API is sent."""

import json
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Depends, Header, HTTPException, Path, Query, Request
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from clients.operations.operations import Operations
from clients.starting.tracked_issue import with_issue_of_page
from septet.agents.clis.registry import ADAPTERS
from septet.contracts.amounts import BudgetText
from septet.contracts.budget import BudgetName, LimitCall
from septet.contracts.decisions import FINDINGS_NAMED, FindingId, MoveCall, RetryCall, Sha256, Who, Words
from septet.contracts.names import ORDER_ID
from septet.contracts.order import TEXT_LIMIT_BYTES, Name, OrderChoices, WorkOrderInput
from septet.contracts.repository import Repository
from septet.contracts.wire import StrictWire, Wire

Body = TypeVar("Body", bound=Wire)
_JSON: Final = "application/json"
_NUMBER: Final = r"^[1-9][0-9]{0,8}$"
_MOST: Final = 999_999_999
_PAGE: Final = (
    r"^https://[^\s?#]+/(-/)?(issues?|pulls?|merge_requests)/([A-Za-z0-9]+-)?[1-9][0-9]{0,8}([/?#]\S*)?$"
)
"""The page of an issue, on a forge or in Linear."""


def _order_id(text: str) -> str:
    if not ORDER_ID.fullmatch(text):
        message = "an id has up to 64 letters, digits, dots, hyphens and underscores"
        raise ValueError(message)
    return text


_ID_SCHEMA: Final[dict[str, Any]] = {"pattern": f"^{ORDER_ID.pattern}$", "examples": ["wo-42"]}
OrderId = Annotated[
    str, AfterValidator(_order_id), Path(description="The work order's id.", json_schema_extra=_ID_SCHEMA)
]
_NewId = Annotated[str, AfterValidator(_order_id), Field(json_schema_extra=_ID_SCHEMA)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_LIMIT_BYTES, pattern=r"[^\s\x00-\x1f]")]
"""Text that says something."""


def _only(name: str, *others: str) -> dict[str, Any]:
    """Return the JSON Schema that wants one property, and none of the others."""
    value = {"not": {"type": "null"}}
    return {"required": [name], "properties": {name: value, **{other: {"type": "null"} for other in others}}}


def _only_a_page(*others: str) -> dict[str, Any]:
    """Return the JSON Schema that wants the address of an issue's page, and none of the others."""
    none = {other: {"type": "null"} for other in others}
    return {"properties": {"repository_url": {"pattern": _PAGE}, **none}}


class NewWorkOrder(OrderChoices):
    """A repository and what is to be done there: an issue's number, a request in words, or a title and a text.

    The address of an issue's page says both.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                _only("github_issue_number", "user_request", "title", "description"),
                _only("user_request", "github_issue_number", "title", "description"),
                _only("title", "github_issue_number", "user_request"),
                _only_a_page("github_issue_number", "user_request", "title", "description"),
            ],
            "examples": [{"repository_url": "https://github.com/o/r", "github_issue_number": "42"}],
        }
    )

    agent: Annotated[Name | None, Field(json_schema_extra={"enum": [*ADAPTERS, None]})] = None
    """The agent to use; the worker's default when absent."""
    repository_url: Repository
    """An address that git takes, or a path on the worker's host; or the address of an issue's page, on its forge
    or in Linear, which names the issue too."""
    sandbox_type: Literal["git_branch", "git_worktree"] = "git_branch"
    """Both values mean the same: every work order has its own clone and branch."""
    workflow_type: Literal["agent_workflow_plan"] = "agent_workflow_plan"
    user_request: _Text | None = None
    """The task in your own words: the first line is the title."""
    github_issue_number: (
        Annotated[int, Field(ge=1, le=_MOST)] | Annotated[str, StringConstraints(pattern=_NUMBER)] | None
    ) = None
    """The number of an issue on the repository's forge, as a number or a string."""
    title: _Text | None = None
    """The issue's title, when the issue is given as text."""
    description: Annotated[str, StringConstraints(max_length=TEXT_LIMIT_BYTES)] | None = None
    """The issue's body, when the issue is given as text."""
    id: _NewId | None = None
    """The work order's id; a used one is refused. One is made when absent."""
    again: bool = False
    """Start another one for an issue that has an open work order."""

    @model_validator(mode="after")
    def _is_an_order(self) -> "NewWorkOrder":
        if self.user_request is not None and (self.github_issue_number, self.title, self.description) != (
            None,
            None,
            None,
        ):
            message = (
                "user_request is given with github_issue_number, title or description: describe the work only once"
            )
            raise ValueError(message)
        self.order()
        return self

    def order(self) -> WorkOrderInput:
        """Return the work order's input.

        Raises:
            ValidationError: It names no work, or more than one, or holds too much text.
        """
        title, description = self.title, self.description
        if self.user_request is not None:
            title, _, rest = self.user_request.strip().partition("\n")
            description = rest.strip()
        number = self.github_issue_number
        choices = {name: getattr(self, name) for name in OrderChoices.model_fields}
        fields = {
            "repository": self.repository_url,
            "issue": int(number) if number is not None else None,
            "title": title,
            "description": description,
        }
        return WorkOrderInput(**with_issue_of_page(fields), **choices)


class CancelBody(StrictWire):
    """Whose decision it is to end a work order, and why."""

    who: Who = ""
    why: Words = ""


class PlanBody(CancelBody):
    """Which plan is meant."""

    plan_sha256: Sha256 | None = None
    """Of the plan's file as it was seen: the work order has it as `plan_sha256`, and a word for another one is
    refused. The plan that waits now when absent."""


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
    """Ids of what the work order waits with as `findings`: they are let pass."""


class RejectBody(PlanBody):
    """What is wrong with a plan, or that what was found in the work is to be taken out."""

    feedback: Annotated[Words, StringConstraints(min_length=1)]
    """Your feedback for the planner."""


class LimitBody(LimitCall):
    """A limit, or by how much it is raised."""

    budget: BudgetName
    """The budget: `day`, `project/NAME`, `pipeline/ID`, or the id of a work order."""


class RaiseBody(LimitBody):
    """By how much a budget is raised."""

    expected: BudgetText | None = None
    """The limit as you saw it: nothing is added to another one, so that a raise that is sent twice adds once. The
    amount is added in any case when absent."""


class RestoreBody(StrictWire):
    """Which snapshot is wanted back."""

    snapshot: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,200}$")]
    """The snapshot's name, from `GET /rescues`."""


class PromptBody(StrictWire):
    """Words for an agent."""

    prompt_text: _Text


async def json_alone(request: Request) -> None:
    """Refuse a body that does not say that it is JSON: a form of another site's page could send it.

    Raises:
        HTTPException: 415.
    """
    media_type = request.headers.get("content-type", "")
    if media_type.partition(";")[0].strip().lower() != _JSON and await request.body():
        detail = f"A body must have `Content-Type: {_JSON}`."
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)


def read_strictly(model: type[Body]) -> BeforeValidator:
    """Read what came by JSON's rules: strict, but an array may be a tuple, a text an enumeration's; 3.0 is 3."""

    def read(value: object) -> Body:
        whole = json.loads(json.dumps(value), parse_float=_number)
        return model.model_validate_json(json.dumps(whole), extra="forbid")

    return BeforeValidator(read)


def _number(text: str) -> int | float:
    """Return a number as JSON Schema sees it: what has no fraction is an integer."""
    number = float(text)
    return int(number) if number.is_integer() else number


NewWorkOrderJson = Annotated[NewWorkOrder, read_strictly(NewWorkOrder)]
CancelJson = Annotated[CancelBody, read_strictly(CancelBody)]
MoveJson = Annotated[MoveCall, read_strictly(MoveCall)]
ApproveJson = Annotated[ApproveBody, read_strictly(ApproveBody)]
RejectJson = Annotated[RejectBody, read_strictly(RejectBody)]
RetryJson = Annotated[RetryCall, read_strictly(RetryCall)]
LimitJson = Annotated[LimitBody, read_strictly(LimitBody)]
RaiseJson = Annotated[RaiseBody, read_strictly(RaiseBody)]
RestoreJson = Annotated[RestoreBody, read_strictly(RestoreBody)]
PromptJson = Annotated[PromptBody, read_strictly(PromptBody)]


MOST_AT_ONCE: Final = 1000


def _operations(request: Request) -> Operations:
    operations: Operations = request.app.state.operations
    return operations


Connected = Annotated[Operations, Depends(_operations)]
Limit = Annotated[int, Query(ge=1, le=MOST_AT_ONCE)]
After = Annotated[str, Query(description="The `next` of the page before.")]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]{0,255}$",
        description=(
            "The same key and body give the same answer again, however often you send them; the work starts once."
        ),
    ),
]
