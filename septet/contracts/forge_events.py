"""What a forge tells by a webhook: one type for each kind of event, whichever forge it is.

They say what has happened to what. What people wrote is untrusted text, and bounded; how things stand is asked of
the forge.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

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


class PullRequestChanged(ForgeEvent):
    """A pull request was opened, pushed to, closed, merged or opened again."""

    kind: Literal["pull_request"] = "pull_request"
    number: int
    url: str = Field(max_length=2048)
    action: Literal["opened", "pushed", "closed", "merged", "reopened", "other"] = "other"
    head: str = Field(default="", max_length=1000)
    """Its branch."""
    head_sha: str = Field(default="", max_length=64)
    actor: str = Field(default="", max_length=200)
    """Who did it."""


class ReviewWritten(ForgeEvent):
    """Somebody reviewed a pull request, or wrote to a line of it."""

    kind: Literal["review"] = "review"
    number: int
    """Of the pull request."""
    url: str = Field(max_length=2048)
    """Of the pull request."""
    review_id: int = 0
    """0 where the forge does not tell."""
    author: str = Field(max_length=200)
    state: Literal["approved", "changes_requested", "commented"] = "commented"
    commit: str = Field(default="", max_length=64)


class ChecksChanged(ForgeEvent):
    """A check, a status or a pipeline of a commit has ended."""

    kind: Literal["checks"] = "checks"
    commit: str = Field(max_length=64)
    name: str = Field(default="", max_length=200)
    state: Literal["pending", "success", "failure"] = "pending"
    pull_requests: tuple[int, ...] = Field(default=(), max_length=_PULL_REQUESTS)
    """Those that the forge names; it may name none."""


AnyEvent = Annotated[
    IssueChanged | CommentWritten | PullRequestChanged | ReviewWritten | ChecksChanged,
    Field(discriminator="kind"),
]
