"""The bodies and parameters of requests to the API."""

import json
import re
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Depends, Header, HTTPException, Path, Query, Request
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from clients.operations.operation import CancelBody
from clients.operations.operations import Operations
from clients.starting.tracked_issue import with_issue_of_page
from septet.agents.clis.registry import ADAPTERS
from septet.contracts.names import ORDER_ID
from septet.contracts.order import TEXT_LIMIT_BYTES, Name, OrderChoices, WorkOrderInput
from septet.contracts.repository import Repository
from septet.contracts.wire import StrictWire, Wire
from septet.pipelines.inputs import PIPELINE_ID, PipelineInput

Body = TypeVar("Body", bound=Wire)
_JSON: Final = "application/json"
_NUMBER: Final = r"^[1-9][0-9]{0,8}$"
_PAGE: Final = (
    r"^https://[^\s?#]+/(-/)?(issues?|pulls?|merge_requests)/([A-Za-z0-9]+-)?[1-9][0-9]{0,8}([/?#]\S*)?$"
)
"""The pattern of the address of an issue's page, on a forge or in Linear."""


def _id(pattern: str, longest: int) -> AfterValidator:
    """Return the validator of an id with this pattern and at most `longest` characters."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"an id has up to {longest} letters, digits, dots, hyphens and underscores")
        return text

    return AfterValidator(check)


_ORDER_ID: Final = _id(ORDER_ID.pattern, 64)
_ORDER_SCHEMA: Final[dict[str, Any]] = {"pattern": f"^{ORDER_ID.pattern}$", "examples": ["wo-42"]}
OrderId = Annotated[str, _ORDER_ID, Path(description="The work order's id.", json_schema_extra=_ORDER_SCHEMA)]
_PIPELINE_ID: Final = _id(PIPELINE_ID, 40)
_PIPELINE_SCHEMA: Final[dict[str, Any]] = {"pattern": PIPELINE_ID, "examples": ["pl-1f0c9a2b"]}
PipelineId = Annotated[
    str, _PIPELINE_ID, Path(description="The pipeline's id.", json_schema_extra=_PIPELINE_SCHEMA)
]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_LIMIT_BYTES, pattern=r"[^\s\x00-\x1f]")]
"""A text with at least one visible character."""


_NULL: Final[dict[str, Any]] = {"type": "null"}
_NOT_NULL: Final[dict[str, Any]] = {"not": _NULL}


def _only(name: str, *others: str) -> dict[str, Any]:
    """Return a JSON Schema that requires one property and forbids the others."""
    return {"required": [name], "properties": {name: _NOT_NULL, **dict.fromkeys(others, _NULL)}}


_WORK: Final = ("github_issue_number", "user_request", "title", "description")


class NewWorkOrder(OrderChoices):
    """A repository and the work to do there: an issue's number, a request in words, or a title and a text.

    The address of an issue's page names the repository and the work.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                _only("github_issue_number", "user_request", "title", "description"),
                _only("user_request", "github_issue_number", "title", "description"),
                _only("title", "github_issue_number", "user_request"),
                {"properties": {"repository_url": {"pattern": _PAGE}, **dict.fromkeys(_WORK, _NULL)}},
            ],
            "examples": [{"repository_url": "https://github.com/o/r", "github_issue_number": "42"}],
        }
    )

    agent: Annotated[Name | None, Field(json_schema_extra={"enum": [*ADAPTERS, None]})] = None
    """The agent to use; the worker's default when absent."""
    repository_url: Repository
    """An address that git takes, or a path on the worker's host; or the address of an issue's page on the
    repository's forge or in Linear, which names the issue too."""
    sandbox_type: Literal["git_branch", "git_worktree"] = "git_branch"
    """Both values mean the same: every work order has its own clone and branch."""
    workflow_type: Literal["agent_workflow_plan"] = "agent_workflow_plan"
    user_request: _Text | None = None
    """The task in your own words: the first line is the title."""
    github_issue_number: (
        Annotated[int, Field(ge=1, le=999_999_999)] | Annotated[str, StringConstraints(pattern=_NUMBER)] | None
    ) = None
    """The number of an issue on the repository's forge, as a number or a string."""
    title: _Text | None = None
    """The issue's title, when the issue is given as text."""
    description: Annotated[str, StringConstraints(max_length=TEXT_LIMIT_BYTES)] | None = None
    """The issue's body, when the issue is given as text."""
    id: Annotated[str, _ORDER_ID, Field(json_schema_extra=_ORDER_SCHEMA)] | None = None
    """The work order's id; a used id is refused. When absent, Septet makes an id."""
    again: bool = False
    """Whether to start another work order for an issue that has an open work order."""

    @model_validator(mode="after")
    def _is_an_order(self) -> "NewWorkOrder":
        others = (self.github_issue_number, self.title, self.description)
        if self.user_request is not None and any(other is not None for other in others):
            names = "github_issue_number, title or description"
            raise ValueError(f"user_request is given with {names}: describe the work only once")
        self.order()
        return self

    def order(self) -> WorkOrderInput:
        """Return the input of the work order that this body describes.

        Raises:
            ValidationError: The body describes no work, or describes the work twice, or has too much text.
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


class NewPipeline(PipelineInput):
    """A repository and its issues: a list of numbers and texts, or a label."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["issues"], "properties": {"issues": {"minItems": 1}, "label": {"type": "null"}}},
                {"required": ["label"], "properties": {"label": _NOT_NULL, "issues": {"maxItems": 0}}},
            ],
            "not": {
                "required": ["one_branch", "executors"],
                "properties": {"one_branch": {"const": True}, "executors": {"minimum": 2}},
            },
            "examples": [{"repository": "https://github.com/o/r", "issues": [1, 2, 3]}],
        }
    )

    id: Annotated[str, _PIPELINE_ID, Field(json_schema_extra=_PIPELINE_SCHEMA)] | None = None
    """The pipeline's id; a used id is refused. When absent, Septet makes an id."""

    def order(self) -> PipelineInput:
        """Return the input of the pipeline that this body describes."""
        return PipelineInput(**{name: getattr(self, name) for name in PipelineInput.model_fields})


class PromptBody(StrictWire):
    """A further prompt for the agent of a work order."""

    prompt_text: _Text


async def json_alone(request: Request) -> None:
    """Refuse a body that is not declared as JSON, because a form on another site's page could send such a body.

    Raises:
        HTTPException: 415.
    """
    media_type = request.headers.get("content-type", "")
    if media_type.partition(";")[0].strip().lower() != _JSON and await request.body():
        detail = f"A body must have `Content-Type: {_JSON}`."
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)


def read_strictly(model: type[Body]) -> BeforeValidator:
    """Return a validator that reads a body strictly by JSON's rules.

    An array may become a tuple, and a text may become a value of an enumeration. As in JSON Schema, a number
    without a fraction is an integer.
    """

    def number(text: str) -> int | float:
        return int(float(text)) if float(text).is_integer() else float(text)

    def read(value: object) -> Body:
        whole = json.loads(json.dumps(value), parse_float=number)
        return model.model_validate_json(json.dumps(whole), extra="forbid")

    return BeforeValidator(read)


NewWorkOrderJson = Annotated[NewWorkOrder, read_strictly(NewWorkOrder)]
NewPipelineJson = Annotated[NewPipeline, read_strictly(NewPipeline)]
CancelJson = Annotated[CancelBody, read_strictly(CancelBody)]
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
