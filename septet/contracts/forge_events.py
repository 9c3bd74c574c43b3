"""The events that forges report by webhook, in one form for all forges.

After an event, Septet reads the present state from the forge. Events of issues and comments also name the user who
acted, and have a digest of the issue's text at that time. People's texts are untrusted and cut to a limit.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from septet.contracts.decisions import FINDINGS_NAMED, FindingId, Sha256, Words
from septet.contracts.names import Step
from septet.contracts.wire import Wire

EVENT_TEXT_LIMIT: Final = 8000
"""The most characters of a text that a person wrote."""


class ForgeEvent(Wire):
    """The fields that all events have."""

    forge: str = Field(max_length=20)
    """`github`, `gitlab` or `gitea`."""
    repository: str = Field(max_length=2048)
    """The repository's address, as a browser shows it."""


class IssueChanged(ForgeEvent):
    """An issue was opened or reopened, or its labels changed."""

    kind: Literal["issue"] = "issue"
    number: int
    state: Literal["open", "closed"] = "open"
    labels: tuple[str, ...] = Field(default=(), max_length=100)
    """All labels of the issue after the event."""
    actor: str = Field(default="", max_length=200)
    """The name of the forge's user who caused the event."""
    text_sha256: str = Field(default="", max_length=64)
    """The SHA-256 of the issue's title and body at the time of the event."""


class CommentWritten(ForgeEvent):
    """A comment was written on an issue or a pull request."""

    kind: Literal["comment"] = "comment"
    number: int
    """The number of the issue or the pull request."""
    url: str = Field(default="", max_length=2048)
    """The address of the page of the issue or pull request."""
    is_on_pull_request: bool = False
    comment_id: int
    author: str = Field(max_length=200)
    body: str = Field(max_length=EVENT_TEXT_LIMIT)
    created_at: str = Field(default="", max_length=40)
    """The time of the comment: ISO 8601."""
    text_sha256: str = Field(default="", max_length=64)
    """The SHA-256 of the issue's title and body at the time of the comment; empty if unknown."""


Look = Literal["none", "followers", "watches", "merged"]


class PullRequestTouched(ForgeEvent):
    """An event on a pull request or a commit; `look` names the watches that then read the pull request's state."""

    kind: Literal["pull_request"] = "pull_request"
    look: Look = "none"
    """Which watches must read the state now: `followers` are those with an agent, `watches` are all, and `merged`
    needs no read."""
    url: str = Field(default="", max_length=2048)
    """The address of the pull request; empty if the event names a commit."""
    commit: str = Field(default="", max_length=64)
    """The commit whose checks have ended."""
    pull_requests: tuple[int, ...] = Field(default=(), max_length=20)
    """The pull requests that the forge names for the commit; may be empty."""


Verb = Literal["run", "retry", "cancel", "approve", "reject", "unknown"]


class CommentCommand(Wire):
    """A command in a comment, with checked fields; only people and the planner read `words`."""

    verb: Verb
    plan_sha256: Sha256 | None = None
    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """The ids of the allowed findings."""
    step: Step | None = None
    """The step from which to continue."""
    words: Words = ""
    """The words after the command: a reason, or feedback for an agent."""


class CommandComment(Wire):
    """A comment with a command, found by an intake's pass."""

    event: CommentWritten
    command: CommentCommand
    workflow_id: str = Field(default="", max_length=500)
    """The id of the workflow that obeys the command; a webhook's report of the same comment gives the same id."""


def comment_workflow_id(forge: str, key: str, comment_id: int) -> str:
    """Return the id of the workflow that obeys a comment's command."""
    return f"comment/{forge}/{key}/{comment_id}"
