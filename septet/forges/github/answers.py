"""What GitHub answers, as far as it is used: read strictly in what is needed, and blind to all else."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from septet.forges.forge import Branch, CheckState, Comment, CommitCheck, Issue, PullRequest, Review, ReviewState
from septet.forges.new_comments import NewComment
from septet.forges.opening import MarkedComment

REVIEWS: Final[dict[str, ReviewState]] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes_requested",
    "COMMENTED": "commented",
}
CONCLUSIONS: Final[dict[str, CheckState]] = {
    "success": "success",
    "neutral": "success",
    "skipped": "success",
    "failure": "failure",
    "error": "failure",
    "cancelled": "failure",
    "timed_out": "failure",
    "action_required": "failure",
    "startup_failure": "failure",
    "stale": "failure",
}


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _User(_Foreign):
    login: str


class _Label(_Foreign):
    name: str | None = None


class _Named(_Foreign):
    full_name: str

    def is_named(self, project: str) -> bool:
        return self.full_name.lower() == project.lower()


class RepositoryAnswer(_Named):
    """`GET /repos/{owner}/{repo}`."""

    parent: _Named | None = None
    """What it was forked from."""
    source: _Named | None = None
    """What that, or what that was forked from, began as."""

    def is_fork_of(self, project: str) -> bool:
        """Say whether it was forked from a repository, or from a fork of it."""
        return any(each is not None and each.is_named(project) for each in (self.parent, self.source))


class _Branch(_Foreign):
    ref: str
    sha: str
    repo: _Named | None = None
    """`None` where the fork is gone."""

    def is_of(self, project: str, ref: str) -> bool:
        """Say whether it is a branch of a repository, as far as GitHub tells."""
        return self.ref == ref and (self.repo is None or self.repo.is_named(project))


class IssueAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/issues/{number}`."""

    number: int
    title: str
    body: str | None = None
    html_url: str
    state: Literal["open", "closed"]
    labels: tuple[_Label | str, ...] = ()
    user: _User | None = None
    comments: int = 0
    """How many there are."""
    pull_request: dict[str, object] | None = None
    """Present where the number is a pull request's."""

    def issue(self, comments: tuple[Comment, ...]) -> Issue:
        """Return the issue with `comments`."""
        names = (label if isinstance(label, str) else label.name for label in self.labels)
        labels = tuple(name for name in names if name)
        author = self.user.login if self.user else ""
        return Issue(self.number, self.title, self.body or "", self.html_url, self.state, labels, comments, author)


class CommentAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/issues/{number}/comments`."""

    id: int
    user: _User | None = None
    body: str | None = None
    created_at: str = ""
    author_association: str = ""

    def comment(self) -> Comment:
        """Return the comment; an account that is gone is GitHub's `ghost`."""
        author = self.user.login if self.user else "ghost"
        return Comment(author, self.body or "", self.created_at, self.author_association.lower())

    def marked_comment(self) -> MarkedComment:
        """Return the comment as one that may carry a mark."""
        return MarkedComment(self.id, self.user.login if self.user else "ghost", self.body or "")


class RepositoryCommentAnswer(CommentAnswer):
    """One of `GET /repos/{owner}/{repo}/issues/comments`."""

    html_url: str
    issue_url: str

    def new_comment(self) -> NewComment:
        """Return the comment, and where it stands."""
        author = self.user.login if self.user else "ghost"
        return NewComment(
            id=self.id,
            number=int(self.issue_url.rpartition("/")[2]),
            is_on_pull_request="/pull/" in self.html_url,
            author=author,
            body=self.body or "",
            created_at=self.created_at,
        )


class AccountAnswer(_Foreign):
    """`GET /user`."""

    login: str


class PullRequestAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/pulls/{number}`, one of the list `…/pulls`, and what a `POST` there answers."""

    number: int
    html_url: str
    head: _Branch
    base: _Branch
    user: _User | None = None
    state: Literal["open", "closed"]
    merged_at: str | None = None
    body: str | None = None
    updated_at: str = ""
    mergeable: bool | None = None

    def pull_request(self) -> PullRequest:
        """Return the pull request."""
        state = "merged" if self.merged_at else self.state
        return PullRequest(
            self.number,
            self.html_url,
            self.head.ref,
            self.base.ref,
            self.head.sha,
            state,
            conflicts=self.mergeable is False,
            base_sha=self.base.sha,
            body=self.body or "",
            updated_at=self.updated_at,
            author=self.user.login if self.user else "",
        )


class PermissionAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/collaborators/{username}/permission`."""

    permission: str
    """`admin`, `write`, `read` or `none`, whatever gives it: the repository, a team or the organization."""


class ReferenceAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/git/matching-refs/heads/{prefix}`."""

    class _Object(_Foreign):
        sha: str

    ref: str
    object: _Object

    def branch(self) -> Branch:
        """Return the branch."""
        return Branch(self.ref.removeprefix("refs/heads/"), self.object.sha)


class ReviewAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/pulls/{number}/reviews`."""

    id: int | None = None
    user: _User | None = None
    state: str
    body: str | None = None
    commit_id: str | None = None
    author_association: str = ""

    def review(self) -> Review | None:
        """Return the review; `None` where it was dismissed, or is not given yet."""
        if (state := REVIEWS.get(self.state)) is None:
            return None
        author = self.user.login if self.user else "ghost"
        standing, own_id = self.author_association.lower(), str(self.id or "")
        return Review(author, state, self.body or "", self.commit_id or "", standing, own_id)


class ReviewCommentAnswer(CommentAnswer):
    """One of `GET /repos/{owner}/{repo}/pulls/{number}/comments`."""

    path: str
    line: int | None = None
    original_line: int | None = None
    in_reply_to_id: int | None = None


class CheckOutputAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/check-runs/{id}`."""

    class _Output(_Foreign):
        title: str | None = None
        summary: str | None = None
        text: str | None = None

    output: _Output = _Output()

    @property
    def text(self) -> str:
        """All that it says."""
        return "\n\n".join(filter(None, (self.output.title, self.output.summary, self.output.text)))


class CheckRunAnswer(_Foreign):
    """One of `GET /repos/{owner}/{repo}/commits/{ref}/check-runs`."""

    id: int | None = None
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None

    def check(self) -> CommitCheck:
        """Return what it says."""
        state = CONCLUSIONS.get(self.conclusion or "", "pending") if self.status == "completed" else "pending"
        return CommitCheck(self.name, state, self.html_url or "", str(self.id or ""))


class CheckRunsAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/commits/{ref}/check-runs`."""

    check_runs: tuple[CheckRunAnswer, ...]


class _Status(_Foreign):
    context: str
    state: str
    target_url: str | None = None
    description: str | None = None


class CombinedStatusAnswer(_Foreign):
    """`GET /repos/{owner}/{repo}/commits/{ref}/status`: the newest status of each service."""

    statuses: tuple[_Status, ...]

    def checks(self) -> tuple[CommitCheck, ...]:
        """Return what they say."""
        return tuple(
            CommitCheck(
                each.context,
                CONCLUSIONS.get(each.state, "pending"),
                each.target_url or "",
                summary=each.description or "",
            )
            for each in self.statuses
        )
