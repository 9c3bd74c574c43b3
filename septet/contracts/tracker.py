"""The issues of a tracker such as Linear, and messages about them."""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from septet.contracts.wire import InnerWire, Wire

TrackerName = Literal["linear"]
TrackerId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""An id that the tracker gives to an issue or a conversation."""
IssueKey = Annotated[str, StringConstraints(max_length=40, pattern=r"^([A-Za-z0-9_]{1,20}-[0-9]{1,9})?$")]
MESSAGE_LIMIT: Final = 60_000
"""The most characters of a message."""
PROMPT_LIMIT: Final = 8000
"""The most characters of a text that a person wrote in a conversation on a tracker."""


def tracked_order_id(tracker: TrackerName, key: str) -> str:
    """Return the id of the work order for an issue, derived from the issue alone."""
    return f"wo-{tracker}-{key.lower()}"


class TrackedIssue(InnerWire):
    """An issue on a tracker; the repository for its work is on a forge."""

    tracker: TrackerName
    id: TrackerId
    """The id or the key with which the tracker finds the issue."""
    key: IssueKey = ""
    """The name that people use, such as `ENG-12`."""
    session: TrackerId | Literal[""] = ""
    """The id of the conversation in which Septet reports progress; empty for an issue without a conversation."""


class SessionStarted(Wire):
    """A person wants work on an issue, and waits for a reply in the conversation on the tracker."""

    issue: TrackedIssue


class SessionPrompted(Wire):
    """A person wrote in a conversation on a tracker, or wants the work to stop."""

    issue: TrackedIssue
    prompt_id: str = Field(max_length=64)
    author: str = Field(default="", max_length=200)
    body: str = Field(default="", max_length=PROMPT_LIMIT)
    is_stop: bool = False


MessageKind = Literal["thought", "action", "elicitation", "response", "error"]


class SessionMessage(Wire):
    """A message of Septet in a conversation on a tracker; a repeated request sends no second message."""

    issue: TrackedIssue
    key: str = Field(max_length=300)
    """The message's id within the conversation."""
    kind: MessageKind
    text: str = Field(max_length=MESSAGE_LIMIT)
    action: str = Field(default="", max_length=200)
    """The action that the message reports; the text is the action's result."""
    parameter: str = Field(default="", max_length=500)
    """The thing to which the action was applied."""
    plan_sha256: str = Field(default="", max_length=64)
    """The SHA-256 of the plan that the message offers for approval."""


class TakeTrackedIssue(Wire):
    """A request to claim a tracker's issue for a workflow."""

    issue: TrackedIssue
    claimant: str
    """The workflow that takes the issue: its id, and the id of its first run."""


class TrackedClaim(Wire):
    """The result of `TakeTrackedIssue`: the work order, its options, and whether the workflow has the issue."""

    issue: TrackedIssue
    """The issue, with all facts that are known now."""
    is_own: bool = False
    order_id: str = ""
    repository: str = ""
    agent: str | None = None
    """The agent that the worker's settings name for the issue; the worker's default when absent."""
    approve_plan: bool = False
    why_not: str = Field(default="", max_length=2000)
    """The reason why the issue is not taken, for people."""


_PAGE: Final = re.compile(
    r"https://linear\.app/(?P<workspace>[A-Za-z0-9_-]+)/team/(?P<team>[A-Za-z0-9_]{1,20})(?:[/?#].*)?"
)


@dataclass(frozen=True, slots=True)
class TeamPage:
    """A team on Linear, as the address of its page names it."""

    workspace: str
    team: str
    """The team's key, such as `ENG`."""

    @property
    def address(self) -> str:
        """The address of the team's page, which ends with the team's key."""
        return f"https://linear.app/{self.workspace}/team/{self.team}"


def team_page(text: str) -> TeamPage | None:
    """Return the team whose page is at the address `text`; `None` if `text` is another address."""
    page = _PAGE.fullmatch(text.strip())
    return TeamPage(page["workspace"].lower(), page["team"].upper()) if page is not None else None
