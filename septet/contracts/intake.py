"""Intakes, which start work orders for issues: their options, calls and replies."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from septet.contracts.forge_events import CommandComment, CommentCommand, CommentWritten
from septet.contracts.order import IssueRequest, Name, WorkOrderInput
from septet.contracts.replies import Reply
from septet.contracts.repository import Repository
from septet.contracts.tracker import TrackedClaim
from septet.contracts.wire import StrictWire, Wire
from septet.system.text import timestamp

INTAKE_PREFIX: Final = "septet-intake-"
"""How the ids of intakes' schedules begin."""
TAKEN_AT_ONCE: Final = 100
"""The most issues that one pass claims; the next pass claims more."""
OBEYED_AT_ONCE: Final = 20
"""The most comments with commands that one pass finds."""
LOOKED_AT_AGAIN: Final = 20
"""The most issues that one pass checks again after earlier passes have passed over them."""
SEEN_LIMIT: Final = 500
_DELIVERED: Final = "last webhook: "
DEFAULT_LABEL: Final = "septet"
EVERY_SECONDS: Final = 300

IntakeId = Annotated[str, StringConstraints(pattern=r"^septet-intake-[A-Za-z0-9._-]{1,120}$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^,\x00-\x1f\x7f]+$")]


class IntakeInput(StrictWire):
    """The issues of a repository that become work orders, and the options of these work orders."""

    repository: Repository
    """An address that git takes, a path on the worker's host, or the page of a team of Linear."""
    label: Label = DEFAULT_LABEL
    """The label of the open issues to take, each once."""
    every_seconds: Annotated[int, Field(ge=10, le=86_400)] = EVERY_SECONDS
    """The seconds between two passes over the forge's issues; a webhook reports an issue immediately."""
    agent: Name | None = None
    """The agent to use; the worker's default when absent."""
    model: Name | None = None
    """The model to use; the agent's default when absent."""
    project: Name | None = None
    """The board's project; the repository's name when absent."""
    at_once: bool = False
    """Start immediately, without waiting for a turn on the board."""
    approve_plan: bool = False
    """Wait for approval after planning."""
    draft: bool = False
    """Open the pull requests as drafts."""

    def order_for(self, issue: int, requested: IssueRequest | None) -> WorkOrderInput:
        """Return the input of the work order for an issue of the forge."""
        return WorkOrderInput(
            repository=self.repository,
            issue=issue,
            requested=requested,
            plan_comment=self.approve_plan,
            **self._choices(),
        )

    def order_for_tracked(self, claim: TrackedClaim) -> WorkOrderInput:
        """Return the input of the work order for a tracker's issue.

        The claim names the repository. The intake's options take precedence over the claim's.
        """
        choices = self._choices()
        choices["agent"] = self.agent or claim.agent
        choices["approve_plan"] = self.approve_plan or claim.approve_plan
        return WorkOrderInput(repository=claim.repository, tracker=claim.issue, **choices)

    def _choices(self) -> dict[str, Any]:
        names = ("agent", "model", "project", "approve_plan", "draft")
        stage: Literal["triaged"] | None = None if self.at_once else "triaged"
        return {"stage": stage} | {name: getattr(self, name) for name in names}


def choose_intake(intakes: Sequence[IntakeInput], labels: Collection[str]) -> IntakeInput:
    """Return the intake whose options apply to an issue, for a repository with several intakes.

    Intakes with one of the issue's labels come before all others. Among equals, those that wait for approval of
    plans come first, then those whose label is first in the alphabet.
    """
    return min(intakes, key=lambda each: (each.label not in labels, not each.approve_plan, each.label))


def delivery_note(when: datetime) -> str:
    """Return the note by which an intake's schedule shows when its repository last sent a webhook."""
    return f"{_DELIVERED}{timestamp(when)}"


def delivered_at(note: str) -> datetime | None:
    """Return the time in a note from `delivery_note`; `None` for any other note."""
    if not note.startswith(_DELIVERED):
        return None
    try:
        return datetime.fromisoformat(note.removeprefix(_DELIVERED))
    except ValueError:
        return None


class IntakePass(Wire):
    """The input of one pass: over all issues with the label, or over one issue that a webhook reports."""

    intake: IntakeInput
    issue: int | None = None
    delivered: IssueRequest | None = None
    """The request that a webhook reports, with its user and a digest of the issue's text at that time."""


class FindIssues(Wire):
    """A request to find issues that no workflow has claimed."""

    repository: str
    label: str
    issue: int | None = None
    """The only issue to check; `None` to check all issues with the label."""
    comments_since: str = ""
    """The time (ISO 8601) from which the pass looks for comments with commands; empty: it looks for none."""
    comments_seen: tuple[int, ...] = ()
    """The ids of comments that earlier passes found."""
    passed_over: tuple[int, ...] = ()
    """The issues that earlier passes did not claim, least recently checked first; they are checked after new
    issues."""


class IssuesFound(Wire):
    """Unclaimed open issues with the label, and new commands in comments."""

    numbers: tuple[int, ...] = Field(default=(), max_length=TAKEN_AT_ONCE)
    comments: tuple[CommandComment, ...] = Field(default=(), max_length=OBEYED_AT_ONCE)
    """The comments with commands that earlier passes did not find, oldest first."""
    comments_until: str = ""
    """The time from which the next pass looks for comments; empty if this pass looked for none."""
    comments_seen: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    """The ids of the newest comments that this and earlier passes found; the next pass skips these comments."""


class ClaimIssue(Wire):
    """A request to claim a forge's issue for a workflow."""

    repository: str
    issue: int
    claimant: str
    """The id of the workflow that takes the issue."""
    claimed_at: str
    """The time of the claim: ISO 8601, UTC; the same in every repeated request."""
    label: str = ""
    """The label of the intake that claims the issue."""
    delivered: IssueRequest | None = None
    """The request that a webhook reports for the label; its time is the webhook's arrival."""
    commanded: IssueRequest | None = None
    """The request in a comment of an account that may push; the issue then needs no label."""


class IssueClaim(Wire):
    """Whether the workflow got the issue, and the id of the issue's work order."""

    is_own: bool
    order_id: str
    tracked: TrackedClaim | None = None
    """The claim on the tracker, for an issue of a tracker."""
    intake: IntakeInput | None = None
    """The intake whose options apply to the work order; `None`: the options of the claiming intake apply."""
    requested: IssueRequest | None = None
    """The user who requested the work on the forge, with a digest of the issue's text at that time; `None` if no
    request is needed."""
    why_not: str = Field(default="", max_length=1000)
    """The reason why the issue is not taken, with a remedy; empty if no person needs to know the reason."""


class IntakeResult(Wire):
    """The work orders that one pass started, and where the next pass continues."""

    started: tuple[str, ...] = Field(default=(), max_length=TAKEN_AT_ONCE)
    comments_until: str = ""
    """The time from which the next pass of the schedule looks for comments; see `IssuesFound`."""
    comments_seen: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    passed_over: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    """The issues that this and earlier passes did not take; see `FindIssues`."""


class IntakeView(Wire):
    """An intake's options and present state."""

    id: IntakeId
    repository: str
    label: str
    every_seconds: int
    agent: str | None = None
    model: str | None = None
    project: str | None = None
    at_once: bool = False
    approve_plan: bool = False
    draft: bool = False
    is_paused: bool = False
    passes: int = 0
    """The number of passes that the intake's schedule started."""
    next_at: str | None = None
    """The time of the next pass: ISO 8601, UTC."""


class IntakeReply(Reply):
    """One intake."""

    intake: IntakeView


class IntakesReply(Reply):
    """All intakes."""

    intakes: tuple[IntakeView, ...] = ()


class IntakeRemovedReply(Reply):
    """A removed intake."""

    removed: IntakeId


class WebhookReply(Reply):
    """The result of a webhook's delivery."""

    accepted: bool
    why: str = ""
    """Why the delivery was not accepted: no intake takes the repository's issues, the event needs no action, or
    the same delivery arrived earlier."""
    workflows: tuple[str, ...] = ()
    """The ids of the workflows that the delivery started."""


ANSWER_LIMIT: Final = 4000


class CommentCall(Wire):
    """A command in a comment, and an intake of the comment's repository."""

    event: CommentWritten
    command: CommentCommand
    intake: IntakeInput
    order_id: str = ""
    """The id of the work order that the command concerns; empty if the caller found no work order."""


class CommenterStanding(Wire):
    """Whether Septet obeys the command in a comment, and the work order that the command is about."""

    is_obeyed: bool
    why_not: str = Field(default="", max_length=ANSWER_LIMIT)
    order_id: str = ""
    """The id of the work order that the command concerns; empty if none was found."""


class CommandAnswer(Wire):
    """Septet's reply to a comment with a command; a retry does not post the reply twice."""

    repository: str
    number: int
    comment_id: int
    text: str = Field(max_length=ANSWER_LIMIT)
    is_on_pull_request: bool = False
    """Whether the comment is on a pull request: some forges keep comments of pull requests apart from comments of
    issues."""
