"""What Gitea and Forgejo answer, as far as it is used: read strictly in what is needed, and blind to all else."""

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from septet.forges.forge import Branch, CheckState, Comment, CommitCheck, Issue, PullRequest, Review, ReviewState
from septet.forges.new_comments import NewComment
from septet.forges.opening import MarkedComment

CHECKS: Final[dict[str, CheckState]] = {
    "success": "success",
    "skipped": "success",
    "warning": "success",
    "failure": "failure",
    "error": "failure",
}
_REVIEWS: Final[dict[str, ReviewState]] = {
    "APPROVED": "approved",
    "REQUEST_CHANGES": "changes_requested",
    "COMMENT": "commented",
}


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class GiteaUserAnswer(_Foreign):
    """An account (`User`)."""

    login: str


class GiteaLabelAnswer(_Foreign):
    """A label of a repository or an organization (`Label`)."""

    id: int
    name: str


class GiteaIssueAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/issues/{index}`, and one of the list (`Issue`)."""

    number: int
    title: str
    body: str | None = None
    html_url: str
    state: Literal["open", "closed"]
    labels: tuple[GiteaLabelAnswer, ...] | None = None
    user: GiteaUserAnswer | None = None
    updated_at: datetime | None = None
    comments: int = 0
    """How many there are."""
    pull_request: dict[str, object] | None = None
    """Present where the number is a pull request's."""

    def issue(self, comments: tuple[Comment, ...] = ()) -> Issue:
        """Return the issue with `comments`."""
        labels = tuple(label.name for label in self.labels or ())
        author = self.user.login if self.user else ""
        return Issue(self.number, self.title, self.body or "", self.html_url, self.state, labels, comments, author)


class GiteaCommentAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/issues/{index}/comments` (`Comment`)."""

    id: int
    body: str | None = None
    user: GiteaUserAnswer | None = None
    created_at: str = ""

    def comment(self, standing: str) -> Comment:
        """Return the comment; an account that is gone is `Ghost`, as Gitea shows it."""
        return Comment(self.user.login if self.user else "Ghost", self.body or "", self.created_at, standing)

    def marked_comment(self) -> MarkedComment:
        """Return the comment as one that may carry a mark."""
        return MarkedComment(self.id, self.user.login if self.user else "Ghost", self.body or "")


class GiteaTimelineAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/issues/{index}/timeline` (`TimelineComment`)."""

    type: str = ""
    user: GiteaUserAnswer | None = None
    created_at: datetime
    label: GiteaLabelAnswer | None = None
    body: str = ""
    """Of a label: `1` where it was set, and empty where it was taken off."""

    def sets(self, label: str) -> bool:
        """Say whether it tells that somebody set a label."""
        return self.type == "label" and self.body == "1" and self.label is not None and self.label.name == label


class GiteaRepositoryCommentAnswer(GiteaCommentAnswer):
    """One of `GET /repos/{owner}/{repo}/issues/comments` (`Comment`)."""

    issue_url: str = ""
    pull_request_url: str = ""

    def new_comment(self) -> NewComment:
        """Return the comment, and where it stands."""
        where = self.pull_request_url or self.issue_url
        return NewComment(
            id=self.id,
            number=int(where.rpartition("/")[2]),
            is_on_pull_request=bool(self.pull_request_url),
            author=self.user.login if self.user else "Ghost",
            body=self.body or "",
            created_at=self.created_at,
        )


class _Repository(_Foreign):
    full_name: str


class GiteaRepositoryAnswer(_Repository):
    """`GET /repos/{owner}/{repo}` (`Repository`)."""

    parent: _Repository | None = None
    """What it was forked from."""

    def is_fork_of(self, project: str) -> bool:
        """Say whether it was forked from a repository."""
        return self.parent is not None and self.parent.full_name.lower() == project.lower()


class _Head(_Foreign):
    ref: str
    sha: str = ""
    repo: _Repository | None = None
    """`None` where the fork is gone."""


class GiteaPermissionAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/collaborators/{collaborator}/permission`."""

    permission: str
    """`owner`, `admin`, `write`, `read` or `none`."""


class GiteaPullRequestAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/pulls/{index}`, and what a `POST` of one answers (`PullRequest`)."""

    number: int
    html_url: str
    head: _Head
    base: _Head
    user: GiteaUserAnswer | None = None
    state: Literal["open", "closed"]
    merged: bool = False
    mergeable: bool | None = None
    draft: bool = False
    body: str | None = None
    updated_at: str = ""

    def pull_request(self) -> PullRequest:
        """Return the pull request."""
        state = "merged" if self.merged else self.state
        return PullRequest(
            self.number,
            self.html_url,
            self.head.ref,
            self.base.ref,
            self.head.sha,
            state,
            conflicts=self.mergeable is False and not self.draft,
            base_sha=self.base.sha,
            body=self.body or "",
            updated_at=self.updated_at,
            author=self.user.login if self.user else "",
        )


class _Commit(_Foreign):
    id: str


class GiteaBranchAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/branches` (`Branch`)."""

    name: str
    commit: _Commit

    def branch(self) -> Branch:
        """Return the branch."""
        return Branch(self.name, self.commit.id)


class GiteaReviewAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/pulls/{index}/reviews` (`PullReview`)."""

    id: int = 0
    comments_count: int = 0
    user: GiteaUserAnswer | None = None
    state: str
    body: str | None = None
    commit_id: str | None = None
    dismissed: bool = False

    def review(self) -> Review | None:
        """Return the review; `None` where it was dismissed, or is not given yet."""
        state = _REVIEWS.get(self.state)
        if state is None or self.dismissed:
            return None
        author, own_id = self.user.login if self.user else "Ghost", str(self.id or "")
        return Review(author, state, self.body or "", self.commit_id or "", id=own_id)


class GiteaReviewCommentAnswer(GiteaCommentAnswer):
    """One of `GET /repos/{owner}/{repo}/pulls/{index}/reviews/{id}/comments` (`PullReviewComment`)."""

    path: str = ""
    position: int = 0
    """The line, as the pull request has it."""
    resolver: GiteaUserAnswer | None = None


class GiteaStatusAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/commits/{ref}/statuses` (`CommitStatus`)."""

    context: str
    status: str
    target_url: str | None = None
    description: str | None = None

    def check(self) -> CommitCheck:
        """Return what it says."""
        return CommitCheck(
            self.context,
            CHECKS.get(self.status, "pending"),
            self.target_url or "",
            summary=self.description or "",
        )
