"""Answers of GitLab. Fields that Septet uses are checked, others are ignored."""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from septet.forges.answers import (
    CommentAnswer,
    Foreign,
    IssueAnswer,
    NamedRepository,
    RepositoryAnswer,
    UserAnswer,
)
from septet.forges.issue_history import IssueEdit
from septet.forges.values import (
    Branch,
    CheckState,
    Comment,
    CommitCheck,
    NewComment,
    PullRequest,
    Review,
    ReviewState,
)

_LEVELS: Final = ((50, "owner"), (40, "maintainer"), (30, "developer"), (20, "reporter"), (10, "guest"))
_CHECKS: Final[dict[str, CheckState]] = {
    "success": "success",
    "skipped": "success",
    "failed": "failure",
    "canceled": "failure",
}
_EDITED: Final = ("changed title ", "changed the description", "marked the task ", "marked the checklist item ")
"""How GitLab's own notes about an edited text begin; a ticked box is an edit too."""
_REVIEWS: Final[dict[str, ReviewState]] = {
    "approved": "approved",
    "requested_changes": "changes_requested",
    "reviewed": "commented",
}


class GitLabUserAnswer(UserAnswer):
    """A user."""

    id: int
    login: str = Field(alias="username")


class _Named(NamedRepository):
    full_name: str = Field(alias="path_with_namespace")


class GitLabProjectAnswer(RepositoryAnswer):
    """The answer to `GET /projects/{id}`."""

    id: int
    full_name: str = Field(alias="path_with_namespace")
    parent: _Named | None = Field(default=None, alias="forked_from_project")


class GitLabMemberAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/members/all`."""

    id: int
    access_level: int

    @property
    def standing(self) -> str:
        """GitLab's name for the member's role."""
        return next((word for level, word in _LEVELS if self.access_level >= level), "none")


class GitLabIssueAnswer(IssueAnswer):
    """The answer to `GET /projects/{id}/issues/{iid}`, or one element of a list of issues."""

    number: int = Field(alias="iid")
    body: str | None = Field(default=None, alias="description")
    html_url: str = Field(alias="web_url")
    user: GitLabUserAnswer | None = Field(default=None, alias="author")
    comments: int = Field(default=0, alias="user_notes_count")
    state: Annotated[Literal["open", "closed"], BeforeValidator({"opened": "open", "closed": "closed"}.get)]
    moved_to_id: int | None = None
    """The id of the issue in another project to which this issue was moved."""


class GitLabNoteAnswer(CommentAnswer):
    """One element of the answer to `GET /projects/{id}/issues/{iid}/notes`."""

    body: str
    user: GitLabUserAnswer | None = Field(default=None, alias="author")
    type: str | None = None
    """The type of a note in a thread: `DiffNote` or `DiscussionNote`."""
    system: bool = False
    """Whether GitLab itself wrote the note, such as a note on a set label."""

    def comment(self) -> Comment:
        """Return the comment with the role `none`, because reading the author's role needs another request."""
        return Comment(self.author, self.body, self.created_at, "none")

    def edit(self) -> IssueEdit | None:
        """Return the edit that the note records; `None` if the note records none."""
        if not self.system or not self.body.startswith(_EDITED):
            return None
        return IssueEdit(self.user.login if self.user else "", datetime.fromisoformat(self.created_at))


class _LabelName(Foreign):
    name: str


class GitLabLabelEventAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/issues/{iid}/resource_label_events`."""

    user: GitLabUserAnswer | None = None
    created_at: datetime
    action: str
    label: _LabelName | None = None
    """The label; `None` if it was deleted."""

    def sets(self, label: str) -> bool:
        """Return whether the event set a label on the issue."""
        return self.action == "add" and self.label is not None and self.label.name == label


class _EventNote(Foreign):
    id: int
    body: str
    noteable_iid: int | None = None
    noteable_type: str = ""
    system: bool = False


class GitLabCommentedAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/events?action=commented`."""

    created_at: str
    author_username: str
    note: _EventNote | None = None

    def new_comment(self) -> NewComment | None:
        """Return the comment with its issue or merge request; `None` if it is on neither."""
        note = self.note
        if note is None or note.system or note.noteable_iid is None:
            return None
        if note.noteable_type not in {"Issue", "MergeRequest"}:
            return None
        return NewComment(
            id=note.id,
            number=note.noteable_iid,
            is_on_pull_request=note.noteable_type == "MergeRequest",
            author=self.author_username,
            body=note.body,
            created_at=self.created_at,
        )


class _Position(Foreign):
    new_path: str | None = None
    new_line: int | None = None


class GitLabThreadNoteAnswer(GitLabNoteAnswer):
    """A note in a discussion, which is GitLab's word for a thread."""

    resolvable: bool = False
    resolved: bool = False
    position: _Position | None = None

    @property
    def path(self) -> str:
        """The file that the note is about; empty if the note is about the whole merge request."""
        return (self.position.new_path if self.position else None) or ""

    @property
    def line(self) -> int | None:
        """The line that the note is about, in the merge request's version of the file."""
        return self.position.new_line if self.position else None


class GitLabDiscussionAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/merge_requests/{iid}/discussions`."""

    id: str
    notes: tuple[GitLabThreadNoteAnswer, ...] = ()


class GitLabMergeRequestAnswer(Foreign):
    """The answer to `GET /projects/{id}/merge_requests/{iid}`, or to a `POST`, or one element of a list."""

    iid: int
    web_url: str
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    """The id of the project with the branch; `None` if the fork was deleted."""
    target_project_id: int
    sha: str | None = None
    state: Literal["opened", "closed", "locked", "merged"]
    description: str | None = None
    updated_at: str = ""
    has_conflicts: bool = False
    author: GitLabUserAnswer | None = None

    def pull_request(self) -> PullRequest:
        """Return the merge request in Septet's form of a pull request."""
        return PullRequest(
            self.iid,
            self.web_url,
            self.source_branch,
            self.target_branch,
            self.sha or "",
            "merged" if self.state == "merged" else "closed" if self.state == "closed" else "open",
            conflicts=self.has_conflicts,
            body=self.description or "",
            updated_at=self.updated_at,
            author=self.author.login if self.author else "",
        )


class _Commit(Foreign):
    id: str


class GitLabBranchAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/repository/branches`."""

    name: str
    commit: _Commit

    def branch(self) -> Branch:
        """Return the branch in Septet's form."""
        return Branch(self.name, self.commit.id)


class GitLabReviewerAnswer(Foreign):
    """One element of the answer to `GET /projects/{id}/merge_requests/{iid}/reviewers`."""

    user: GitLabUserAnswer
    state: str

    def review(self) -> Review | None:
        """Return the reviewer's review; `None` if there was none yet."""
        state = _REVIEWS.get(self.state)
        return Review(self.user.login, state) if state else None


class _Approver(Foreign):
    user: GitLabUserAnswer


class GitLabApprovalsAnswer(Foreign):
    """The answer to `GET /projects/{id}/merge_requests/{iid}/approvals`."""

    approved_by: tuple[_Approver, ...] = ()


class GitLabStatusAnswer(Foreign):
    """One element of `GET /projects/{id}/repository/commits/{sha}/statuses`: a job or a service's status."""

    id: int | None = None
    name: str
    status: str
    target_url: str | None = None
    description: str | None = None
    allow_failure: bool = False

    def check(self) -> CommitCheck:
        """Return the status as a check; a failed job that is allowed to fail counts as a success."""
        state = _CHECKS.get(self.status, "pending")
        return CommitCheck(
            self.name,
            "success" if self.allow_failure and state == "failure" else state,
            self.target_url or "",
            str(self.id or ""),
            self.description or "",
        )
