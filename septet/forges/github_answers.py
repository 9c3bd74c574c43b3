"""What GitHub answers, as far as it is used: read strictly in what is needed, and blind to all else."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from septet.forges.forge import Comment, Issue, PullRequest


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _User(_Foreign):
    login: str


class _Label(_Foreign):
    name: str | None = None


class _Branch(_Foreign):
    ref: str
    sha: str


class IssueAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/issues/{number}`."""

    number: int
    title: str
    body: str | None = None
    html_url: str
    state: Literal["open", "closed"]
    labels: tuple[_Label | str, ...] = ()
    comments: int = 0
    """How many there are."""
    pull_request: dict[str, object] | None = None
    """Present where the number is a pull request's."""

    def issue(self, comments: tuple[Comment, ...]) -> Issue:
        """Return the issue with `comments`."""
        names = (label if isinstance(label, str) else label.name for label in self.labels)
        labels = tuple(name for name in names if name)
        return Issue(self.number, self.title, self.body or "", self.html_url, self.state, labels, comments)


class CommentAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/issues/{number}/comments`."""

    user: _User | None = None
    body: str | None = None
    created_at: str = ""

    def comment(self) -> Comment:
        """Return the comment; an account that is gone is GitHub's `ghost`."""
        return Comment(self.user.login if self.user else "ghost", self.body or "", self.created_at)


class PullRequestAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/pulls/{number}`, one of the list `…/pulls`, and what a `POST` there answers."""

    number: int
    html_url: str
    head: _Branch
    base: _Branch
    state: Literal["open", "closed"]
    merged_at: str | None = None
    body: str | None = None

    def pull_request(self) -> PullRequest:
        """Return the pull request."""
        state = "merged" if self.merged_at else self.state
        return PullRequest(self.number, self.html_url, self.head.ref, self.base.ref, self.head.sha, state)


class _Detail(_Foreign):
    message: str | None = None
    resource: str = ""
    field: str = ""
    code: str = ""


class RefusalAnswer(_Foreign):
    """What GitHub says with a status of 4xx."""

    message: str = ""
    errors: tuple[_Detail | str, ...] = Field(default=())

    @property
    def text(self) -> str:
        """All that it says, on one line."""
        details = (
            error
            if isinstance(error, str)
            else error.message or f"{error.resource} {error.field} {error.code}".strip()
            for error in self.errors
        )
        return "; ".join(text for text in (self.message, *details) if text)
