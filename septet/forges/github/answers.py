"""Answers of GitHub that no other forge has.

Only the GraphQL API reports who edited an issue's body, and which account an App's key has.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.answers import CommentAnswer, Foreign, ReviewAnswer, status_check
from septet.forges.http.api import BOT
from septet.forges.issue_history import IssueEdit, IssueHistory
from septet.forges.values import Branch, CheckState, CommitCheck, NewComment, ReviewState

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient

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
        """Return the comment with the issue or pull request that it belongs to."""
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
        """Return the branch in Septet's form."""
        return Branch(self.ref.removeprefix("refs/heads/"), self.object.sha)


class GitHubReviewAnswer(ReviewAnswer):
    """A review on GitHub, with GitHub's words for its state."""

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
        """Return the results in Septet's form of checks."""
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
        """Return the results in Septet's form of checks."""
        return tuple(
            status_check(CONCLUSIONS, each.context, each.state, each.target_url, each.description)
            for each in self.statuses
        )


HISTORY: Final = """
query History($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) {
      lastEditedAt
      editor { __typename login }
      userContentEdits(first: 100) {
        nodes { editedAt editor { __typename login } }
        pageInfo { hasNextPage }
      }
      timelineItems(last: 100, itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT]) {
        nodes {
          ... on LabeledEvent { createdAt actor { __typename login } label { name } }
          ... on RenamedTitleEvent { createdAt actor { __typename login } }
        }
        pageInfo { hasPreviousPage }
      }
    }
  }
}
"""
VIEWER: Final = "query Viewer { viewer { login } }"
_RIGHTS: Final = "Give the token the permissions that `septet docs forges` lists, on this repository."


class _Actor(Foreign):
    kind: str = Field(default="", alias="__typename")
    login: str = ""

    @property
    def account(self) -> str:
        """The account's name; as in the REST API, a bot's name ends with `[bot]`."""
        return f"{self.login}{BOT}" if self.kind == "Bot" and not self.login.endswith(BOT) else self.login


class _Edit(Foreign):
    editedAt: datetime
    editor: _Actor | None = None


class _EditPage(Foreign):
    hasNextPage: bool


class _Edits(Foreign):
    nodes: tuple[_Edit | None, ...] = ()
    pageInfo: _EditPage


class _Label(Foreign):
    name: str


class _Event(Foreign):
    createdAt: datetime
    actor: _Actor | None = None
    label: _Label | None = None
    """The label, if the event set one; `None` for a changed title."""


class _EventPage(Foreign):
    hasPreviousPage: bool


class _Events(Foreign):
    nodes: tuple[_Event | None, ...] = ()
    pageInfo: _EventPage


class IssueHistoryAnswer(Foreign):
    """The issue in the answer to the query `HISTORY`."""

    lastEditedAt: datetime | None = None
    editor: _Actor | None = None
    userContentEdits: _Edits | None = None
    timelineItems: _Events

    def history(self, label: str) -> IssueHistory:
        """Return an issue's edits, and who set `label`; if GitHub has further pages, some edits may be missing."""
        events, edits = [each for each in self.timelineItems.nodes if each is not None], self.userContentEdits
        of_label = [each for each in events if each.label is not None and each.label.name.lower() == label.lower()]
        last = of_label[-1] if of_label else None
        edited = [(each.actor, each.createdAt) for each in events if each.label is None]
        edited += [(each.editor, each.editedAt) for each in edits.nodes if each is not None] if edits else []
        if self.lastEditedAt is not None:
            edited.append((self.editor, self.lastEditedAt))
        has_more = self.timelineItems.pageInfo.hasPreviousPage or bool(edits and edits.pageInfo.hasNextPage)
        return IssueHistory(
            set_by=last.actor.account if last is not None and last.actor is not None else "",
            set_at=last.createdAt if last is not None else None,
            edits=tuple(IssueEdit(who.account if who else "", at) for who, at in edited),
            tells_all_edits=not has_more,
        )


class _Error(Foreign):
    type: str | None = ""
    message: str = ""


class _Reply(Foreign):
    data: dict[str, Any] | None = None
    errors: tuple[_Error, ...] | None = None


def ask_graphql(client: "ApiClient", document: str, variables: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a GraphQL answer; raise if the answer holds an error, even with a status of success.

    Raises:
        NotFoundError: The thing does not exist, or the token may not see it.
        ForgeUnavailableError: GitHub's limit is spent, or the operation did not finish.
        ForgeError: The forge refused.
    """
    address = f"{client.api.url.removesuffix('/v3')}/graphql"  # GitHub Enterprise has GraphQL next to the REST API
    reply = _Reply.model_validate_json(client.ask_graphql(address, document, variables).content)
    if not reply.errors:
        return reply.data or {}
    kinds, words = {each.type for each in reply.errors}, "; ".join(each.message for each in reply.errors)[:1000]
    message = f"GitHub refused ({client.what}): {words}"
    if kinds & {"RATE_LIMIT", "RATE_LIMITED"}:
        raise ForgeUnavailableError(f"GitHub wants to be left alone ({client.what}).")
    if "NOT_FOUND" in kinds:
        raise NotFoundError(message, remedy=_RIGHTS)
    if kinds <= {"", None}:  # the operation did not finish
        raise ForgeUnavailableError(message)
    raise ForgeError(message, remedy=_RIGHTS)
