"""The input of a work order from people and programs, with the tools, the model and the limits of its agents."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from septet.contracts.amounts import BudgetText
from septet.contracts.names import Sessions, Step
from septet.contracts.repository import Repository
from septet.contracts.tracker import TrackedIssue
from septet.contracts.wire import InnerWire, StrictWire

Tools = Literal["all", "read", "none"]

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}$")]
"""The name of an agent or a model, which no command line mistakes for an option."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
MOST_SETUP_SECONDS: Final = 3600.0
"""The most seconds that all set-up commands of a repository may take together."""
SetupSeconds = Annotated[float, Field(gt=0, le=MOST_SETUP_SECONDS)]
Turns = Annotated[int, Field(ge=1, le=10_000)]


class Timeouts(InnerWire):
    """Limits of one agent run."""

    wall_seconds: Seconds = 3600.0
    """The most seconds from start to end."""
    idle_seconds: Seconds = 600.0
    """The most seconds without a byte on the agent's stream."""
    turns: Turns = 500
    """The most assistant turns on the agent's stream."""
    heartbeat_seconds: Annotated[float, Field(ge=1, le=3600)] = 120.0
    """The seconds without a heartbeat from the worker until another attempt begins. Heartbeats cost money and come
    30 s earlier, so the server may be away for 30 s. If the host has another worker, a dead worker is noticed
    sooner."""


class SomeLimits(InnerWire):
    """Some limits of an agent run; absent limits are not set."""

    wall_seconds: Seconds | None = None
    idle_seconds: Seconds | None = None
    turns: Turns | None = None


class StepSettings(SomeLimits):
    """The tools, the model and the limits of one step; absent values are not set."""

    tools: Tools | None = None
    model: Word | None = None
    budget: BudgetText | None = None
    """The limit for all runs of the step together, such as `3usd`."""

    def over(self, limits: Timeouts) -> Timeouts:
        """Return `limits`, changed by every limit that is set here."""
        own = self.model_dump(include=set(Timeouts.model_fields), exclude_none=True)
        return limits.model_copy(update=own)


class IssueRequest(InnerWire):
    """A request to begin work, made by a person who may push: a label or a comment."""

    by: str = Field(default="", max_length=200)
    """The person's user name on the forge."""
    at: str = Field(default="", max_length=40)
    """The time of the request: ISO 8601."""
    text_sha256: str = Field(default="", max_length=64)
    """The `text_sha256` of the issue's title and body at that time; empty if unknown."""
    waits_because: str = Field(default="", max_length=1000)
    """The reason why a person must read the issue before work begins; empty if work may begin."""


def text_sha256(title: str, body: str | None) -> str:
    """Return the SHA-256 of an issue's title and body; line ends and outer spaces make no difference."""
    lines = (body or "").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return hashlib.sha256(json.dumps([" ".join(title.split()), lines]).encode()).hexdigest()


TEXT_LIMIT_BYTES = 64 * 1024
"""The most bytes of a title and a description together."""
LONGEST_TITLE: Final = 200
"""The most characters of a work order's title, and of an issue's title in a pipeline; a longer title is cut."""
FOLLOW_IN_PIPELINE: Final = "follow_pr: the work orders of a pipeline share their workspaces: leave it out there"
"""The message that refuses `follow_pr` in a pipeline."""

Score = Annotated[int, Field(ge=1, le=5)]


def _no_option(name: str) -> str:
    if name.startswith("-"):
        raise ValueError("a name does not begin with a hyphen: programs would take it for an option")
    return name


Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$"),
    AfterValidator(_no_option),
]
"""One line that no program mistakes for an option."""
Fork = Annotated[
    str,
    StringConstraints(
        max_length=500, pattern=r"^[A-Za-z0-9._~+@][A-Za-z0-9._~+@-]*(/[A-Za-z0-9._~+@][A-Za-z0-9._~+@-]*)+$"
    ),
]
"""The name of a repository on the same forge, such as `me/r`."""
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class OrderChoices(StrictWire):
    """The options of a work order: all of its input but the repository and the issue."""

    agent: Name | None = None
    """The agent to use; the worker's default when absent."""
    model: Name | None = None
    """The model to use; the agent's default when absent."""
    fallback_agent: Name | None = None
    """The agent that takes over while the usage limit of the first agent is reached; the repository's or the
    worker's choice when absent."""
    base: Name | None = None
    """The branch to start from; the repository's default branch when absent."""
    push_to: Fork | None = None
    """The fork on the same forge to push work to, such as `me/r`; the worker's setting when absent. The pull
    request is opened in `repository`."""
    project: Name | None = None
    """The board's project; the repository's name when absent."""
    priority: Score = 3
    impact: Score = 3
    effort: Score = 3
    after: Annotated[tuple[Id, ...], Field(max_length=100)] = ()
    """Work orders that must reach `after_until` before this one starts."""
    after_until: Literal["merged", "completed", "closed"] = "merged"
    """`merged`, `completed` with a proven pull request, or `closed` in any way."""
    stage: Literal["collected", "triaged"] | None = None
    """The stage in which the work order waits for you, or for its turn; when absent, it starts immediately."""
    approve_plan: bool = False
    """Wait for approval after planning."""
    plan_only: bool = False
    """End with the plan, proven and kept; a retry continues with it."""
    follow_pr: bool = False
    """Have the agent answer failed checks, reviews and conflicts of the pull request until it has ended."""
    draft: bool = False
    """Open the pull request as a draft."""
    sessions: Sessions | None = None
    """`shared`: the planner's steps share one session of the agent, and the implementor's steps another one;
    `separate`: each step has its own. The repository's or the worker's choice when absent."""
    timeouts: Timeouts = Timeouts()
    """The limits of every step."""
    budget: BudgetText | None = None
    """The limit for all agents of the work order together, such as `5usd`, `2Mtok` or `90min`; when the limit is
    used up, the work order waits."""
    steps: Mapping[Step, StepSettings] = Field(default_factory=dict)
    """The tools, the model and the limits of each named step, which take precedence over values for all steps and
    over the repository's values."""
    labels: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    """Labels for the pull request."""


class WorkOrderInput(OrderChoices):
    """One issue on its way to a pull request: a repository, and the issue as a number or as text."""

    repository: Repository
    """A path, or an address that git takes: `https://…`, `ssh://…`, `git@host:…`, `file://…`."""
    issue: Annotated[int, Field(ge=1)] | None = None
    """The number of an issue on the repository's forge."""
    title: Annotated[str, StringConstraints(max_length=TEXT_LIMIT_BYTES)] | None = None
    """The issue's title, when the issue is given as text."""
    description: str | None = None
    """The issue's body, when the issue is given as text."""
    tracker: TrackedIssue | None = None
    """The issue, when a tracker such as Linear has it and not the repository's forge."""
    requested: IssueRequest | None = None
    """The person who requested the work on the forge, and a digest of the issue's text then; set by intakes."""
    plan_comment: bool = False
    """Post a plan that waits for approval to the issue."""
    pipeline: Id | None = None
    """The pipeline that the work order belongs to, whose agents work on many issues."""
    pipeline_budget: BudgetText | None = None
    """The limit for all agents of that pipeline together."""

    @model_validator(mode="after")
    def _names_its_issue(self) -> "WorkOrderInput":
        if self.tracker is not None and (self.issue, self.title, self.description) != (None, None, None):
            raise ValueError("tracker is given with issue, title or description: name the issue once")
        if self.tracker is None and self.issue is None and not (self.title or "").strip():
            message = "issue or title is missing: name an issue of the forge, or give a title and a description"
            raise ValueError(message)
        if self.issue is not None and (self.title is not None or self.description is not None):
            message = "issue and title/description are both given: name the issue, or give its text, not both"
            raise ValueError(message)
        size = len(((self.title or "") + (self.description or "")).encode())
        if size > TEXT_LIMIT_BYTES:
            message = (
                f"title and description hold {size} bytes, {TEXT_LIMIT_BYTES} are allowed: "
                "put the text into an issue of the forge or a file of the repository, and name it here"
            )
            raise ValueError(message)
        return self
