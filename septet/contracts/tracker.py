"""Issues of a tracker such as Linear: which one, what is told of it, and what passes on the way."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from septet.contracts.wire import InnerWire, Wire

TrackerName = Literal["linear"]
TrackerId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""As the tracker itself names something."""
IssueKey = Annotated[str, StringConstraints(max_length=40, pattern=r"^([A-Za-z0-9_]{1,20}-[0-9]{1,9})?$")]
MESSAGE_LIMIT: Final = 60_000
"""Characters of a message."""
PROMPT_LIMIT: Final = 8000
"""Characters of what somebody wrote to a session."""


def tracked_order_id(tracker: TrackerName, key: str) -> str:
    """Return the id of an issue's work order; it is the same for every caller that starts the work order."""
    return f"wo-{tracker}-{key.lower()}"


class TrackedIssue(InnerWire):
    """The issue of a tracker that a work order is about; its code lives on a forge."""

    tracker: TrackerName
    id: TrackerId
    """By which the tracker finds it: its own id, or its key."""
    key: IssueKey = ""
    """What people call it, such as `ENG-12`."""
    session: TrackerId | Literal[""] = ""
    """The conversation in which people are told how it gets on; empty where there is none."""


class SessionStarted(Wire):
    """Somebody asked Septet to work on an issue, and waits for a word in a session."""

    issue: TrackedIssue


class SessionPrompted(Wire):
    """Somebody wrote to a session, or wants it to stop."""

    issue: TrackedIssue
    prompt_id: str = Field(max_length=64)
    author: str = Field(default="", max_length=200)
    body: str = Field(default="", max_length=PROMPT_LIMIT)
    is_stop: bool = False


MessageKind = Literal["thought", "action", "elicitation", "response", "error"]


class SessionMessage(Wire):
    """What is said in a session; however often it is sent, it stands there once."""

    issue: TrackedIssue
    key: str = Field(max_length=300)
    """What it is known by within the session."""
    kind: MessageKind
    text: str = Field(max_length=MESSAGE_LIMIT)
    action: str = Field(default="", max_length=200)
    """What was done, where that is what the message tells; the text is its result."""
    parameter: str = Field(default="", max_length=500)
    """What it was done to."""
    plan_sha256: str = Field(default="", max_length=64)
    """The plan that the message asks about."""


class TakeTrackedIssue(Wire):
    """An issue that is to be taken, and by whom."""

    issue: TrackedIssue
    claimant: str
    """The workflow that takes it: its id, and its first run's."""


class TrackedClaim(Wire):
    """Whether an issue is the claimant's now, its work order, and how that is to be done."""

    issue: TrackedIssue
    """With all that is known of it by now."""
    is_own: bool = False
    order_id: str = ""
    repository: str = ""
    agent: str | None = None
    """The agent that the worker's settings name for it; its default when absent."""
    approve_plan: bool = False
    why_not: str = Field(default="", max_length=2000)
    """Why it is not taken, for people."""
