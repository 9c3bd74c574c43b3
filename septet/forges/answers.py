"""The common form of answers of GitHub, Gitea and Forgejo. Used fields are checked, other fields are ignored."""

from datetime import datetime
from typing import ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from septet.forges.opening import MarkedComment
from septet.forges.values import CheckState, Comment, CommitCheck, Issue, PullRequest, Review, ReviewState


class Foreign(BaseModel):
    """A part of an answer of a forge or a tracker."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class UserAnswer(Foreign):
    """A user of the forge."""

    login: str


class LabelAnswer(Foreign):
    """A label of an issue."""

    name: str | None = None


class NamedRepository(Foreign):
    """A repository's name."""

    full_name: str

    def is_named(self, project: str) -> bool:
        """Return whether the repository's name is `project`, without regard to case."""
        return self.full_name.lower() == project.lower()


class RepositoryAnswer(NamedRepository):
    """The answer to `GET /repos/{owner}/{repo}`."""

    parent: NamedRepository | None = None
    """The repository of which this one is a fork."""
    source: NamedRepository | None = None
    """The first repository in the chain of forks to which this one belongs."""


class IssueAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/issues/{number}`."""

    number: int
    title: str
    body: str | None = None
    html_url: str
    state: Literal["open", "closed"]
    labels: tuple[LabelAnswer | str, ...] | None = ()
    user: UserAnswer | None = None
    comments: int = 0
    """The number of comments."""
    updated_at: datetime | None = None
    pull_request: dict[str, object] | None = None
    """The fields of a pull request; `None` if the number belongs to an issue."""

    def issue(self, comments: tuple[Comment, ...] = ()) -> Issue:
        """Return the issue in Septet's form, with the given comments."""
        names = (label if isinstance(label, str) else label.name for label in self.labels or ())
        labels = tuple(name for name in names if name)
        author = self.user.login if self.user else ""
        return Issue(self.number, self.title, self.body or "", self.html_url, self.state, labels, comments, author)


class CommentAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/issues/{number}/comments`."""

    ghost: ClassVar[str] = "ghost"
    """The name that the forge shows in place of a deleted account."""

    id: int
    user: UserAnswer | None = None
    body: str | None = None
    created_at: str = ""
    author_association: str = ""

    @property
    def author(self) -> str:
        """The author of the comment."""
        return self.user.login if self.user else self.ghost

    def comment(self) -> Comment:
        """Return the comment in Septet's form."""
        return Comment(self.author, self.body or "", self.created_at, self.author_association.lower())

    def marked_comment(self) -> MarkedComment:
        """Return the comment as a `MarkedComment`, in whose text Septet searches for a hidden mark."""
        return MarkedComment(self.id, self.author, self.body or "")


class BranchAnswer(Foreign):
    """The branch of a pull request, or its base branch."""

    ref: str
    sha: str = ""
    repo: NamedRepository | None = None
    """The repository of the branch; `None` if the fork was deleted."""

    def is_of(self, project: str, ref: str) -> bool:
        """Return whether this is branch `ref` of `project`; if the fork was deleted, only `ref` counts."""
        return self.ref == ref and (self.repo is None or self.repo.is_named(project))


class PullRequestForm(Protocol):
    """One forge's form of a pull request."""

    def pull_request(self) -> PullRequest:
        """Return the pull request in Septet's form."""


class PullRequestAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/pulls/{number}` or `POST …/pulls`, or one element of a list."""

    number: int
    html_url: str
    head: BranchAnswer
    base: BranchAnswer
    user: UserAnswer | None = None
    state: Literal["open", "closed"]
    merged_at: str | None = None
    merged: bool | None = None
    body: str | None = None
    updated_at: str = ""
    mergeable: bool | None = None
    draft: bool = False

    @property
    def conflicts(self) -> bool:
        """Whether the forge reports that the pull request cannot be merged."""
        return self.mergeable is False

    def pull_request(self) -> PullRequest:
        """Return the pull request in Septet's form."""
        return PullRequest(
            self.number,
            self.html_url,
            self.head.ref,
            self.base.ref,
            self.head.sha,
            "merged" if self.merged_at or self.merged else self.state,
            conflicts=self.conflicts,
            base_sha=self.base.sha,
            body=self.body or "",
            updated_at=self.updated_at,
            author=self.user.login if self.user else "",
        )


class PermissionAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/collaborators/{username}/permission`."""

    permission: str
    """The account's permission, such as `owner`, `admin`, `write`, `read` or `none`."""

    @property
    def may_write(self) -> bool:
        """Whether the account may push."""
        return self.permission in {"owner", "admin", "maintain", "write"}


class ReviewAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/pulls/{number}/reviews`."""

    ghost: ClassVar[str] = "ghost"
    states: ClassVar[dict[str, ReviewState]]
    """The states of reviews, by the forge's words."""

    id: int | None = None
    user: UserAnswer | None = None
    state: str
    body: str | None = None
    commit_id: str | None = None
    author_association: str = ""
    dismissed: bool = False
    comments_count: int = 0

    def review(self) -> Review | None:
        """Return the review; `None` for a dismissed review or a draft."""
        if self.dismissed or (state := self.states.get(self.state)) is None:
            return None
        author, standing = self.user.login if self.user else self.ghost, self.author_association.lower()
        return Review(author, state, self.body or "", self.commit_id or "", standing, str(self.id or ""))


def status_check(
    states: dict[str, CheckState], context: str, state: str, url: str | None, summary: str | None
) -> CommitCheck:
    """Return the status that a service set on a commit, in Septet's form of a check."""
    return CommitCheck(context, states.get(state, "pending"), url or "", summary=summary or "")
