"""Issues that are taken from a forge or a tracker: which ones, how they are done, and what passes on the way."""

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
from septet.system.timestamps import timestamp

INTAKE_PREFIX: Final = "septet-intake-"
"""What the ids of the schedules of intakes begin with."""
TAKEN_AT_ONCE: Final = 100
"""The most issues that one pass takes; the next one takes more."""
OBEYED_AT_ONCE: Final = 20
"""The most comments with commands that one pass finds."""
LOOKED_AT_AGAIN: Final = 20
"""Issues that one pass looks at although passes before have not taken them."""
SEEN_LIMIT: Final = 500
_DELIVERED: Final = "last webhook: "
DEFAULT_LABEL: Final = "septet"
EVERY_SECONDS: Final = 300

IntakeId = Annotated[str, StringConstraints(pattern=r"^septet-intake-[A-Za-z0-9._-]{1,120}$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^,\x00-\x1f\x7f]+$")]


class IntakeInput(StrictWire):
    """Which issues of a repository become work orders, and how these are done."""

    repository: Repository
    """An address that git takes, a path on the worker's host, or the page of a team of Linear."""
    label: Label = DEFAULT_LABEL
    """Open issues that have this label are taken, each once."""
    every_seconds: Annotated[int, Field(ge=10, le=86_400)] = EVERY_SECONDS
    """How often Septet asks the forge; a webhook reports an issue immediately."""
    agent: Name | None = None
    """The agent to use; the worker's default when absent."""
    model: Name | None = None
    """The model to ask the agent for; the agent's default when absent."""
    project: Name | None = None
    """The board's project; the repository's name when absent."""
    at_once: bool = False
    """Start immediately, without waiting for a turn on the board."""
    approve_plan: bool = False
    """Wait for approval after planning."""
    draft: bool = False
    """Open the pull requests as drafts."""

    def order_for(self, issue: int, requested: IssueRequest | None) -> WorkOrderInput:
        """Return the input of the work order of an issue: all but its number and who asked is the intake's own."""
        return WorkOrderInput(
            repository=self.repository,
            issue=issue,
            requested=requested,
            plan_comment=self.approve_plan,
            **self._choices(),
        )

    def order_for_tracked(self, claim: TrackedClaim) -> WorkOrderInput:
        """Return the input of the work order of a tracker's issue: its repository is as the settings say.

        What the intake says goes before what the settings say of the team.
        """
        choices = self._choices()
        choices["agent"] = self.agent or claim.agent
        choices["approve_plan"] = self.approve_plan or claim.approve_plan
        return WorkOrderInput(repository=claim.repository, tracker=claim.issue, **choices)

    def _choices(self) -> dict[str, Any]:
        """Return what all of its work orders have in common."""
        names = ("agent", "model", "project", "approve_plan", "draft")
        stage: Literal["triaged"] | None = None if self.at_once else "triaged"
        return {"stage": stage} | {name: getattr(self, name) for name in names}


def choose_intake(intakes: Sequence[IntakeInput], labels: Collection[str]) -> IntakeInput:
    """Return the intake of a repository whose options apply to an issue, whoever finds it first.

    One whose label the issue has goes before others, then one that waits for approval of the plan, then the one
    whose label comes first in the alphabet.

    Args:
        intakes: Those of the repository, at least one.
        labels: Of the issue.
    """
    return min(intakes, key=lambda each: (each.label not in labels, not each.approve_plan, each.label))


def delivery_note(when: datetime) -> str:
    """Return the note at an intake that its repository sends webhooks of pull requests."""
    return f"{_DELIVERED}{timestamp(when)}"


def delivered_at(note: str) -> datetime | None:
    """Return when a repository has sent a webhook, by the note at its intake; `None` where it does not say."""
    if not note.startswith(_DELIVERED):
        return None
    try:
        return datetime.fromisoformat(note.removeprefix(_DELIVERED))
    except ValueError:
        return None


class IntakePass(Wire):
    """One pass of an intake: over all issues with its label, or over one that somebody tells of."""

    intake: IntakeInput
    issue: int | None = None
    delivered: IssueRequest | None = None
    """Who did what a webhook tells of, and the issue's text as that tells it."""


class FindIssues(Wire):
    """Which issues are to be found that nobody has taken."""

    repository: str
    label: str
    issue: int | None = None
    """This one alone."""
    comments_since: str = ""
    """Comments with commands are found from this time on (ISO 8601); none, where it is empty."""
    comments_seen: tuple[int, ...] = ()
    """Ids of comments that passes before have found."""
    passed_over: tuple[int, ...] = ()
    """Issues that passes before have not taken, those that were looked at longest ago first: others go first."""


class IssuesFound(Wire):
    """Issues that are open, have the label, and that nobody has taken."""

    numbers: tuple[int, ...] = Field(default=(), max_length=TAKEN_AT_ONCE)
    comments: tuple[CommandComment, ...] = Field(default=(), max_length=OBEYED_AT_ONCE)
    """Commands that were not found before, the oldest first."""
    comments_until: str = ""
    """Where the next pass goes on; empty where none was looked for."""
    comments_seen: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    """The newest ids: the next pass passes over them."""


class ClaimIssue(Wire):
    """An issue that is to be taken, by whom, and when."""

    repository: str
    issue: int
    claimant: str
    """The id of the workflow that takes it."""
    claimed_at: str
    """ISO 8601, UTC; the same whenever the workflow asks again."""
    label: str = ""
    """Of the intake that asks."""
    delivered: IssueRequest | None = None
    """What a webhook tells of the label; a time in it is when the webhook came."""
    commanded: IssueRequest | None = None
    """A comment of somebody who may push asks for it, whether it has the label or not."""


class IssueClaim(Wire):
    """Whether an issue is the claimant's now, and the work order that it has."""

    is_own: bool
    order_id: str
    tracked: TrackedClaim | None = None
    """What a tracker and the settings say of it, where a tracker has it."""
    intake: IntakeInput | None = None
    """The intake whose options apply to it; the one that asks when absent."""
    requested: IssueRequest | None = None
    """Who asked for it, and which text is worked on; `None` where nobody has to be asked."""
    why_not: str = Field(default="", max_length=1000)
    """Why it is not taken, and what helps, where that is for people to know."""


class IntakeResult(Wire):
    """The work orders that a pass has started."""

    started: tuple[str, ...] = Field(default=(), max_length=TAKEN_AT_ONCE)
    comments_until: str = ""
    """As in `IssuesFound`: a schedule hands it to its next pass."""
    comments_seen: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    passed_over: tuple[int, ...] = Field(default=(), max_length=SEEN_LIMIT)
    """As in `FindIssues`."""


class IntakeView(Wire):
    """An intake as it is now."""

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
    """How often its schedule has looked."""
    next_at: str | None = None
    """When it looks next: ISO 8601, UTC."""


class IntakeReply(Reply):
    """One intake."""

    intake: IntakeView


class IntakesReply(Reply):
    """All intakes."""

    intakes: tuple[IntakeView, ...] = ()


class IntakeRemovedReply(Reply):
    """An intake that takes no more."""

    removed: IntakeId


class WebhookReply(Reply):
    """What became of a delivery."""

    accepted: bool
    why: str = ""
    """Why it was not: nobody takes issues of the repository, it says nothing to act on, or it came before."""
    workflows: tuple[str, ...] = ()
    """What it has started."""


ANSWER_LIMIT: Final = 4000


class CommentCall(Wire):
    """A command, who gave it where, and what is taken of the repository."""

    event: CommentWritten
    command: CommentCommand
    intake: IntakeInput
    order_id: str = ""
    """The work order that it is about; empty where none was found before it is obeyed."""


class CommenterStanding(Wire):
    """Whether a command is to be obeyed."""

    is_obeyed: bool
    why_not: str = Field(default="", max_length=ANSWER_LIMIT)
    order_id: str = ""
    """The work order that it is about, from now on; empty where there is none yet."""


class CommandAnswer(Wire):
    """What is answered to a comment; however often it is written, it stands there once."""

    repository: str
    number: int
    comment_id: int
    text: str = Field(max_length=ANSWER_LIMIT)
    is_on_pull_request: bool = False
    """A pull request's comments may be apart from those of issues."""
