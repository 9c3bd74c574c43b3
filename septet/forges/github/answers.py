"""Answers of GitHub that have their own forms."""

from typing import ClassVar, Final

from septet.forges.answers import CommentAnswer, Foreign, ReviewAnswer, status_check
from septet.forges.values import Branch, CheckState, CommitCheck, NewComment, ReviewState

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


class RepositoryCommentAnswer(CommentAnswer):
    """One element of the answer to `GET /repos/{owner}/{repo}/issues/comments`."""

    html_url: str
    issue_url: str

    def new_comment(self) -> NewComment:
        """Return the comment with its place."""
        return NewComment(
            id=self.id,
            number=int(self.issue_url.rpartition("/")[2]),
            is_on_pull_request="/pull/" in self.html_url,
            author=self.author,
            body=self.body or "",
            created_at=self.created_at,
        )


class ReferenceAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/git/matching-refs/heads/{prefix}`."""

    class _Object(Foreign):
        sha: str

    ref: str
    object: _Object

    def branch(self) -> Branch:
        """Return the branch."""
        return Branch(self.ref.removeprefix("refs/heads/"), self.object.sha)


class GitHubReviewAnswer(ReviewAnswer):
    """A review."""

    states: ClassVar[dict[str, ReviewState]] = REVIEWS


class ReviewCommentAnswer(CommentAnswer):
    """One element of the answer to `GET /repos/{owner}/{repo}/pulls/{number}/comments`."""

    path: str
    line: int | None = None
    original_line: int | None = None
    in_reply_to_id: int | None = None


class CheckOutputAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/check-runs/{id}`."""

    class _Output(Foreign):
        title: str | None = None
        summary: str | None = None
        text: str | None = None

    output: _Output = _Output()

    @property
    def text(self) -> str:
        """Title, summary and text of the check's output."""
        return "\n\n".join(filter(None, (self.output.title, self.output.summary, self.output.text)))


class _CheckRun(Foreign):
    id: int | None = None
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None

    def check(self) -> CommitCheck:
        state = CONCLUSIONS.get(self.conclusion or "", "pending") if self.status == "completed" else "pending"
        return CommitCheck(self.name, state, self.html_url or "", str(self.id or ""))


class CheckRunsAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/commits/{ref}/check-runs`."""

    check_runs: tuple[_CheckRun, ...]

    def checks(self) -> tuple[CommitCheck, ...]:
        """Return the results as checks."""
        return tuple(each.check() for each in self.check_runs)


class _Status(Foreign):
    context: str
    state: str
    target_url: str | None = None
    description: str | None = None


class CombinedStatusAnswer(Foreign):
    """The answer to `GET /repos/{owner}/{repo}/commits/{ref}/status`: the newest status of each service."""

    statuses: tuple[_Status, ...]

    def checks(self) -> tuple[CommitCheck, ...]:
        """Return the results as checks."""
        return tuple(
            status_check(CONCLUSIONS, each.context, each.state, each.target_url, each.description)
            for each in self.statuses
        )
