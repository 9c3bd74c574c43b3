"""The events of GitHub, Gitea and Forgejo: one form, in which the names of kinds and actions differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypedDict

from septet.contracts.forge_events import (
    ChecksChanged,
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    PullRequestChanged,
    ReviewWritten,
)
from septet.contracts.issue_request import text_sha256
from septet.forges.forge import CheckState, ReviewState
from septet.forges.webhooks import Delivery, ForeignEvent, Reader, bounded_text, read_payload

PullRequestAction = Literal["opened", "pushed", "closed", "reopened"]
MOST_LABELS: Final = 100
_MOST_PULL_REQUESTS: Final = 20
_NAME_LIMIT: Final = 200
_GHOST: Final = "ghost"


class _User(ForeignEvent):
    login: str = ""


class _Label(ForeignEvent):
    name: str


class _Repository(ForeignEvent):
    html_url: str


class _Commit(ForeignEvent):
    ref: str = ""
    sha: str = ""


class _Numbered(ForeignEvent):
    number: int


class _IssueFacts(ForeignEvent):
    number: int
    title: str | None = None
    body: str | None = None
    html_url: str = ""
    state: Literal["open", "closed"] = "open"
    labels: tuple[_Label, ...] | None = None
    pull_request: dict[str, object] | None = None

    @property
    def text_sha256(self) -> str:
        """What title and body are known by; empty where they are not told."""
        return text_sha256(self.title, self.body) if self.title is not None else ""


class _CommentFacts(ForeignEvent):
    id: int
    user: _User | None = None
    body: str | None = None
    created_at: str = ""


class _PullRequestFacts(ForeignEvent):
    number: int
    html_url: str
    head: _Commit = _Commit()
    merged: bool | None = None


class _ReviewFacts(ForeignEvent):
    id: int = 0
    user: _User | None = None
    state: str = ""
    type: str = ""
    """Gitea's name of the state; it tells neither the id nor the author."""
    commit_id: str | None = None


class _CheckFacts(ForeignEvent):
    head_sha: str
    name: str | None = None
    conclusion: str | None = None
    pull_requests: tuple[_Numbered, ...] = ()


class _Event(ForeignEvent):
    action: str = ""
    repository: _Repository
    sender: _User = _User()


class _IssueEvent(_Event):
    issue: _IssueFacts


class _CommentEvent(_IssueEvent):
    comment: _CommentFacts
    is_pull: bool = False
    """Gitea's; on GitHub the issue tells."""


class _PullRequestEvent(_Event):
    pull_request: _PullRequestFacts


class _ReviewEvent(_PullRequestEvent):
    review: _ReviewFacts = _ReviewFacts()


class _ReviewCommentEvent(_PullRequestEvent):
    comment: _CommentFacts


class _ChecksEvent(_Event):
    check_run: _CheckFacts | None = None
    check_suite: _CheckFacts | None = None


class _StatusEvent(_Event):
    sha: str
    context: str
    state: str


class _Origin(TypedDict):
    forge: str
    repository: str


@dataclass(frozen=True, slots=True)
class EventForm:
    """How one forge tells its events: its readers are named in a `WebhookKind`."""

    forge: str
    issue_actions: frozenset[str]
    """After which an issue may be taken."""
    pull_request_actions: Mapping[str, PullRequestAction]
    review_actions: frozenset[str]
    """After which a review is written."""
    review_states: Mapping[str, ReviewState]
    check_states: Mapping[str, CheckState]
    """Of a check's conclusion, and of a commit's status."""

    def issue(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what an issue has become."""
        event = read_payload(_IssueEvent, delivery)
        if event.action not in self.issue_actions or event.issue.pull_request is not None:
            return None
        return IssueChanged(
            **self._origin(event),
            number=event.issue.number,
            state=event.issue.state,
            labels=tuple(label.name for label in (event.issue.labels or ())[:MOST_LABELS]),
            actor=event.sender.login,
            text_sha256=event.issue.text_sha256,
        )

    def comment(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what somebody wrote on an issue or a pull request."""
        event = read_payload(_CommentEvent, delivery)
        if event.action != "created" or event.comment.user is None:
            return None
        return CommentWritten(
            **self._origin(event),
            number=event.issue.number,
            url=event.issue.html_url,
            is_on_pull_request=event.is_pull or event.issue.pull_request is not None,
            comment_id=event.comment.id,
            author=event.comment.user.login,
            body=bounded_text(event.comment.body),
            created_at=event.comment.created_at,
            text_sha256=event.issue.text_sha256,
        )

    def pull_request(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what a pull request has become."""
        event = read_payload(_PullRequestEvent, delivery)
        pull_request = event.pull_request
        is_merged = event.action == "closed" and bool(pull_request.merged)
        return PullRequestChanged(
            **self._origin(event),
            number=pull_request.number,
            url=pull_request.html_url,
            action="merged" if is_merged else self.pull_request_actions.get(event.action, "other"),
            head=pull_request.head.ref,
            head_sha=pull_request.head.sha,
            actor=event.sender.login,
        )

    def review(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what somebody thinks of a pull request."""
        event = read_payload(_ReviewEvent, delivery)
        review, pull_request = event.review, event.pull_request
        state = self.review_states.get((review.state or review.type).lower())
        if event.action not in self.review_actions or state is None:
            return None
        return ReviewWritten(
            **self._origin(event),
            number=pull_request.number,
            url=pull_request.html_url,
            review_id=review.id,
            author=(review.user or event.sender).login or _GHOST,
            state=state,
            commit=review.commit_id or pull_request.head.sha,
        )

    def review_comment(self, delivery: Delivery) -> ForgeEvent | None:
        """Return that somebody wrote to a line of a pull request."""
        event = read_payload(_ReviewCommentEvent, delivery)
        if event.action != "created":
            return None
        return ReviewWritten(
            **self._origin(event),
            number=event.pull_request.number,
            url=event.pull_request.html_url,
            review_id=event.comment.id,
            author=event.comment.user.login if event.comment.user else _GHOST,
        )

    def checks(self, delivery: Delivery) -> ForgeEvent | None:
        """Return what a check or all checks of an App came to."""
        event = read_payload(_ChecksEvent, delivery)
        facts = event.check_run or event.check_suite
        if event.action != "completed" or facts is None:
            return None
        return ChecksChanged(
            **self._origin(event),
            commit=facts.head_sha,
            name=(facts.name or "")[:_NAME_LIMIT],
            state=self.check_states.get(facts.conclusion or "", "pending"),
            pull_requests=tuple(each.number for each in facts.pull_requests[:_MOST_PULL_REQUESTS]),
        )

    def status(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the status that was set on a commit."""
        event = read_payload(_StatusEvent, delivery)
        return ChecksChanged(
            **self._origin(event),
            commit=event.sha,
            name=event.context[:_NAME_LIMIT],
            state=self.check_states.get(event.state, "pending"),
        )

    def _origin(self, event: _Event) -> _Origin:
        return {"forge": self.forge, "repository": event.repository.html_url}


def common_readers(form: EventForm) -> dict[str, Reader]:
    """Return the readers of the kinds of events that have the same names everywhere."""
    return {
        "issues": form.issue,
        "issue_comment": form.comment,
        "pull_request": form.pull_request,
        "status": form.status,
    }
