"""Answers of Gitea and Forgejo that differ from GitHub's."""

from datetime import datetime
from typing import ClassVar, Final

from septet.forges.answers import (
    CommentAnswer,
    Foreign,
    IssueAnswer,
    LabelAnswer,
    PullRequestAnswer,
    ReviewAnswer,
    UserAnswer,
    status_check,
)
from septet.forges.values import Branch, CheckState, CommitCheck, NewComment, ReviewState

CHECKS: Final[dict[str, CheckState]] = {
    "success": "success",
    "skipped": "success",
    "warning": "success",
    "failure": "failure",
    "error": "failure",
}
_GHOST: Final = "Ghost"


class GiteaLabelAnswer(LabelAnswer):
    """A label of a repository or an organization (`Label`)."""

    id: int
    name: str


class GiteaIssueAnswer(IssueAnswer):
    """The answer to `GET /repos/{owner}/{repo}/issues/{index}`, or one element of a list of issues (`Issue`)."""

    labels: tuple[GiteaLabelAnswer, ...] | None = None


class GiteaCommentAnswer(CommentAnswer):
    """One element of the answer to `GET /repos/{owner}/{repo}/issues/{index}/comments` (`Comment`)."""

    ghost: ClassVar[str] = _GHOST


class GiteaTimelineAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/issues/{index}/timeline` (`TimelineComment`)."""

    type: str = ""
    user: UserAnswer | None = None
    created_at: datetime
    label: GiteaLabelAnswer | None = None
    body: str = ""
    """For a label event, `1` if the label was set, and empty if it was removed."""

    def sets(self, label: str) -> bool:
        """Return whether the event set a label on the issue."""
        return self.type == "label" and self.body == "1" and self.label is not None and self.label.name == label


class GiteaRepositoryCommentAnswer(GiteaCommentAnswer):
    """One element of the answer to `GET /repos/{owner}/{repo}/issues/comments` (`Comment`)."""

    issue_url: str = ""
    pull_request_url: str = ""

    def new_comment(self) -> NewComment:
        """Return the comment with the issue or pull request that it belongs to."""
        where = self.pull_request_url or self.issue_url
        return NewComment(
            id=self.id,
            number=int(where.rpartition("/")[2]),
            is_on_pull_request=bool(self.pull_request_url),
            author=self.author,
            body=self.body or "",
            created_at=self.created_at,
        )


class GiteaPullRequestAnswer(PullRequestAnswer):
    """The answer to `GET /repos/{owner}/{repo}/pulls/{index}`, or to a `POST` (`PullRequest`)."""

    @property
    def conflicts(self) -> bool:
        """Whether Gitea reports a conflict; false for a draft, about which Gitea does not know."""
        return self.mergeable is False and not self.draft


class _Commit(Foreign):
    id: str


class GiteaBranchAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/branches` (`Branch`)."""

    name: str
    commit: _Commit

    def branch(self) -> Branch:
        """Return the branch in Septet's form."""
        return Branch(self.name, self.commit.id)


class GiteaReviewAnswer(ReviewAnswer):
    """One element of the answer to `GET /repos/{owner}/{repo}/pulls/{index}/reviews` (`PullReview`)."""

    ghost: ClassVar[str] = _GHOST
    states: ClassVar[dict[str, ReviewState]] = {
        "APPROVED": "approved",
        "REQUEST_CHANGES": "changes_requested",
        "COMMENT": "commented",
    }


class GiteaReviewCommentAnswer(GiteaCommentAnswer):
    """One element of `GET /repos/{owner}/{repo}/pulls/{index}/reviews/{id}/comments` (`PullReviewComment`)."""

    path: str = ""
    position: int = 0
    """The line, in the pull request's version of the file."""
    resolver: UserAnswer | None = None


class GiteaStatusAnswer(Foreign):
    """One element of the answer to `GET /repos/{owner}/{repo}/commits/{ref}/statuses` (`CommitStatus`)."""

    context: str
    status: str
    target_url: str | None = None
    description: str | None = None

    def check(self) -> CommitCheck:
        """Return the status in Septet's form of a check."""
        return status_check(CHECKS, self.context, self.status, self.target_url, self.description)
