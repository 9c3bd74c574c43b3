"""The input of a pipeline, and the decisions that people send to it."""

import re
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import to_json

from septet.contracts.amounts import BudgetText
from septet.contracts.order import TEXT_LIMIT_BYTES as ISSUE_LIMIT_BYTES
from septet.contracts.order import Fork, Name, Seconds
from septet.contracts.repository import Repository
from septet.contracts.wire import InnerWire, StrictWire, Wire

MOST_ISSUES = 1000
MOST_DEPENDENCIES = 5_000
"""The most dependencies of all issues together, because each workflow run passes them to the next."""
MOST_BEFORE = 100
"""The most dependencies of one issue."""
PIPELINE_ID = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,40}$"
"""The pattern of a pipeline's id, which is short because its work orders' ids begin with it."""
ISSUE_ID = r"^[A-Za-z0-9._-]{1,20}$"
_NOT_AN_ISSUE = re.compile(r"\.{1,2}|planner|executor-\d+|0\d+")
"""The pattern of texts that cannot be an issue's id: names of folders or lanes, numbers with leading zeros."""
TEXT_LIMIT_BYTES = 500_000
"""The most bytes, as JSON, of all issues that are given as text: a Temporal payload holds two million bytes, and
must also hold all results."""

IssueNumber = Annotated[int, Field(ge=1)]
IssueId = Annotated[str, StringConstraints(pattern=ISSUE_ID)]
PipelineId = Annotated[str, StringConstraints(pattern=PIPELINE_ID)]


class PipelineIssue(InnerWire):
    """One issue of a pipeline: a number on the repository's forge, or a text."""

    id: IssueId
    """The id, unique in the pipeline; for an issue of the forge, its number."""
    title: Annotated[str, StringConstraints(max_length=1024)] = ""
    body: str | None = None
    """The issue's text; absent for an issue of the forge, whose text Septet reads from the forge."""
    depends_on: Annotated[tuple[IssueId, ...], Field(max_length=MOST_BEFORE)] = ()
    """The issues of the pipeline that must be completed before this issue."""

    @property
    def number(self) -> int | None:
        """The issue's number on the forge; `None` for an issue that is given as text."""
        return int(self.id) if self.body is None and re.fullmatch("[1-9][0-9]*", self.id) else None

    @model_validator(mode="after")
    def _is_whole(self) -> "PipelineIssue":
        if _NOT_AN_ISSUE.fullmatch(self.id):
            raise ValueError(f"{self.id} cannot be an issue's id: it names something else, or begins with a zero")
        size = len(f"{self.title}{self.body or ''}".encode())
        if size > ISSUE_LIMIT_BYTES:
            message = (
                f"title and body hold {size} bytes, {ISSUE_LIMIT_BYTES} are allowed: put the text on the forge"
            )
            raise ValueError(message)
        if self.number is None and not self.title.strip():
            raise ValueError("title is missing: an issue is a number of the forge, or has a title and a body")
        return self


class PipelineChoices(StrictWire):
    """The options of a pipeline: all of its input but the repository and the issues."""

    agent: Name | None = None
    """The agent of both roles; the worker's default when absent."""
    planner: Name | None = None
    """The agent that plans, if it is a different one."""
    executor: Name | None = None
    """The agent that implements, if it is a different one."""
    fallback_agent: Name | None = None
    """The agent that takes over while the usage limit of one of these agents is reached, as for a work order."""
    model: Name | None = None
    base: Name | None = None
    push_to: Fork | None = None
    """A fork on the same forge to push all work to, as for a work order."""
    project: Name | None = None
    executors: Annotated[int, Field(ge=1, le=16)] = 1
    """The number of solutions with different files that may be implemented in parallel."""
    one_branch: bool = False
    """One branch and one pull request, with a commit for each solution."""
    fresh: bool = False
    """Give each issue new sessions, which know nothing of the other issues."""
    plans_ahead: Annotated[int, Field(ge=1, le=50)] = 5
    """The number of solutions that may wait for an executor before the planner pauses."""
    context_tokens: Annotated[int, Field(ge=1_000, le=100_000_000)] = 120_000
    """The longest session in tokens: a longer session writes a summary, with which the next issue starts a new
    session."""
    plan_seconds: Seconds = 300.0
    """The most seconds for a plan."""
    execution_seconds: Seconds = 600.0
    """The most seconds for the implementation of a solution."""
    budget: BudgetText | None = None
    """The limit for all agents of the pipeline together, such as `20usd`; at the limit, the work orders wait."""
    draft: bool = False
    labels: Annotated[tuple[Name, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _fits(self) -> "PipelineChoices":
        if self.one_branch and self.executors > 1:
            raise ValueError("one_branch needs one executor: commits on one branch come one after the other")
        return self


class PipelineInput(PipelineChoices):
    """The issues of one repository, and the options of the pipeline that works on them."""

    repository: Repository
    issues: Annotated[tuple[PipelineIssue | IssueNumber, ...], Field(max_length=MOST_ISSUES)] = ()
    """The issues in the order you want; a plain number is an issue of the forge."""
    label: Name | None = None
    """The label of the open issues of the forge to take, instead of a list."""

    @property
    def issue_list(self) -> tuple[PipelineIssue, ...]:
        """The issues as objects: the plain number `1` becomes `{"id": "1"}`."""
        return tuple(
            each if isinstance(each, PipelineIssue) else PipelineIssue(id=str(each)) for each in self.issues
        )

    @model_validator(mode="after")
    def _names_its_issues(self) -> "PipelineInput":
        if bool(self.issues) == (self.label is not None):
            raise ValueError("give either issues or a label")
        size = sum(len(to_json(f"{each.title}{each.body or ''}")) for each in self.issue_list)
        if size > TEXT_LIMIT_BYTES:
            message = (
                f"the issues hold {size} bytes as JSON, {TEXT_LIMIT_BYTES} are allowed: put them on the forge"
            )
            raise ValueError(message)
        return self


class IssueCall(StrictWire):
    """A person's decision about one issue of a pipeline."""

    issue_id: str
    who: str = ""
    why: str = ""
    """For `replan`: your feedback for the planner."""


class PipelineCall(StrictWire):
    """A person's decision about a whole pipeline."""

    who: str = ""
    why: str = ""


class ReadIssues(Wire):
    """A request to read issues from a repository's forge."""

    repository: str
    ids: tuple[IssueId, ...] = ()
    label: Name | None = None


class IssuesRead(Wire):
    """Issues of a forge, without their texts."""

    issues: tuple[PipelineIssue, ...]
