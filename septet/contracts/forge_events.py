"""What a forge tells by a webhook, whichever forge it is: a nudge, by which the forge is asked how things stand.

Only of issues and comments more is kept: who did it, and what the issue said then. What people wrote is untrusted
text, and bounded.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from septet.contracts.decisions import FINDINGS_NAMED, FindingId, Sha256, Words
from septet.contracts.names import Step
from septet.contracts.wire import Wire

EVENT_TEXT_LIMIT: Final = 8000
"""Characters of what somebody wrote."""
_LABELS: Final = 100
_PULL_REQUESTS: Final = 20


class ForgeEvent(Wire):
    """What all events have."""

    forge: str = Field(max_length=20)
    """`github`, `gitlab` or `gitea`."""
    repository: str = Field(max_length=2048)
    """The repository's address, as a browser shows it."""


class IssueChanged(ForgeEvent):
    """An issue was opened, opened again, or given other labels."""

    kind: Literal["issue"] = "issue"
    number: int
    state: Literal["open", "closed"] = "open"
    labels: tuple[str, ...] = Field(default=(), max_length=_LABELS)
    """All that it has now."""
    actor: str = Field(default="", max_length=200)
    """Who did it."""
    text_sha256: str = Field(default="", max_length=64)
    """Of the issue's title and body as they were then."""


class CommentWritten(ForgeEvent):
    """Somebody wrote a comment on an issue or a pull request."""

    kind: Literal["comment"] = "comment"
    number: int
    """Of the issue or the pull request."""
    url: str = Field(default="", max_length=2048)
    """Of its page."""
    is_on_pull_request: bool = False
    comment_id: int
    author: str = Field(max_length=200)
    body: str = Field(max_length=EVENT_TEXT_LIMIT)
    created_at: str = Field(default="", max_length=40)
    """ISO 8601."""
    text_sha256: str = Field(default="", max_length=64)
    """Of the title and the body of the issue as they were then; empty where it is not told."""


Look = Literal["none", "followers", "watches", "merged"]


class PullRequestTouched(ForgeEvent):
    """Something happened on a pull request, or to a commit: how things stand is asked of the forge."""

    kind: Literal["pull_request"] = "pull_request"
    look: Look = "none"
    """Who is to look at it now: agents that follow it, or all its watches. `merged`: nobody needs to look."""
    url: str = Field(default="", max_length=2048)
    """Of the pull request; empty where a commit is named."""
    commit: str = Field(default="", max_length=64)
    """Whose checks have ended."""
    pull_requests: tuple[int, ...] = Field(default=(), max_length=_PULL_REQUESTS)
    """Those of the commit that the forge names; it may name none."""


Verb = Literal["run", "retry", "cancel", "approve", "reject", "unknown"]


class CommentCommand(Wire):
    """What a comment asks for: validated fields, and words that only people and the planner read."""

    verb: Verb
    plan_sha256: Sha256 | None = None
    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """Ids of what is let pass."""
    step: Step | None = None
    """Where to go on."""
    words: Words = ""
    """A reason, or feedback."""


class CommandComment(Wire):
    """A comment that asks for something, as a pass of an intake has found it."""

    event: CommentWritten
    command: CommentCommand
    workflow_id: str = Field(default="", max_length=500)
    """Of the workflow that obeys it: the same, whoever tells of the comment."""


def comment_workflow_id(forge: str, key: str, comment_id: int) -> str:
    """Return the id of the workflow that obeys a comment.

    Args:
        forge: Its name.
        key: The key of the repository's address.
        comment_id: The forge's own.
    """
    return f"comment/{forge}/{key}/{comment_id}"
