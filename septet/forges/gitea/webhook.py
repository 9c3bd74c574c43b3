"""What Gitea and Forgejo send: GitHub's form in most of it, with names of their own for kinds and actions."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from septet.contracts.forge_events import (
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    PullRequestChanged,
    ReviewWritten,
)
from septet.forges.webhooks import (
    Delivery,
    ForeignEvent,
    WebhookKind,
    bounded_text,
    is_hmac_sha256,
    read_payload,
)

_GITEA: Final = "gitea"
_ISSUE_ACTIONS: Final = frozenset({"opened", "reopened", "label_updated"})
_PULL_REQUEST_ACTIONS: Final[Mapping[str, Literal["opened", "pushed", "closed", "reopened"]]] = {
    "opened": "opened",
    "synchronized": "pushed",
    "closed": "closed",
    "reopened": "reopened",
}
_REVIEWS: Final[Mapping[str, Literal["approved", "changes_requested", "commented"]]] = {
    "pull_request_approved": "approved",
    "pull_request_rejected": "changes_requested",
    "pull_request_comment": "commented",
}
_MOST_LABELS: Final = 100


class _User(ForeignEvent):
    login: str = ""


class _Label(ForeignEvent):
    name: str


class _Repository(ForeignEvent):
    html_url: str


class _Head(ForeignEvent):
    ref: str = ""
    sha: str = ""


class _IssueFacts(ForeignEvent):
    number: int
    html_url: str = ""
    state: Literal["open", "closed"] = "open"
    labels: tuple[_Label, ...] | None = None
    pull_request: dict[str, object] | None = None


class _CommentFacts(ForeignEvent):
    id: int
    user: _User | None = None
    body: str | None = None
    created_at: str = ""


class _PullRequestFacts(ForeignEvent):
    number: int
    html_url: str
    head: _Head = _Head()
    merged: bool = False


class _Event(ForeignEvent):
    action: str = ""
    repository: _Repository
    sender: _User = _User()


class _IssueEvent(_Event):
    issue: _IssueFacts


class _CommentEvent(_IssueEvent):
    comment: _CommentFacts
    is_pull: bool = False


class _PullRequestEvent(_Event):
    pull_request: _PullRequestFacts


def _issue(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_IssueEvent, delivery)
    if event.action not in _ISSUE_ACTIONS or event.issue.pull_request is not None:
        return None
    return IssueChanged(
        forge=_GITEA,
        repository=event.repository.html_url,
        number=event.issue.number,
        state=event.issue.state,
        labels=tuple(label.name for label in (event.issue.labels or ())[:_MOST_LABELS]),
    )


def _comment(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_CommentEvent, delivery)
    if event.action != "created" or event.comment.user is None:
        return None
    return CommentWritten(
        forge=_GITEA,
        repository=event.repository.html_url,
        number=event.issue.number,
        url=event.issue.html_url,
        is_on_pull_request=event.is_pull or event.issue.pull_request is not None,
        comment_id=event.comment.id,
        author=event.comment.user.login,
        body=bounded_text(event.comment.body),
        created_at=event.comment.created_at,
    )


def _pull_request(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_PullRequestEvent, delivery)
    pull_request = event.pull_request
    if (state := _REVIEWS.get(delivery.header("x-gitea-event-type"))) is not None:
        return ReviewWritten(
            forge=_GITEA,
            repository=event.repository.html_url,
            number=pull_request.number,
            url=pull_request.html_url,
            author=event.sender.login,
            state=state,
            commit=pull_request.head.sha,
        )
    is_merged = event.action == "closed" and pull_request.merged
    return PullRequestChanged(
        forge=_GITEA,
        repository=event.repository.html_url,
        number=pull_request.number,
        url=pull_request.html_url,
        action="merged" if is_merged else _PULL_REQUEST_ACTIONS.get(event.action, "other"),
        head=pull_request.head.ref,
        head_sha=pull_request.head.sha,
        actor=event.sender.login,
    )


_READERS: Final[Mapping[str, Callable[[Delivery], ForgeEvent | None]]] = {
    "issues": _issue,
    "issue_comment": _comment,
    "pull_request": _pull_request,
    "pull_request_approved": _pull_request,
    "pull_request_rejected": _pull_request,
    "pull_request_comment": _pull_request,
}


def _is_signed(delivery: Delivery, secret: str) -> bool:
    return is_hmac_sha256(delivery.body, secret, delivery.header("x-gitea-signature"))


def _read_event(delivery: Delivery) -> ForgeEvent | None:
    reader = _READERS.get(delivery.header("x-gitea-event"))
    return reader(delivery) if reader is not None else None


GITEA_WEBHOOK: Final = WebhookKind(_is_signed, _read_event)
