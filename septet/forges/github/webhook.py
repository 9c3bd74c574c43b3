"""What GitHub sends: `X-GitHub-Event` names the kind, `X-Hub-Signature-256` proves it."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from septet.contracts.forge_events import (
    ChecksChanged,
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    PullRequestChanged,
    ReviewWritten,
)
from septet.forges.github.answers import CONCLUSIONS, REVIEWS
from septet.forges.webhooks import (
    Delivery,
    ForeignEvent,
    WebhookKind,
    bounded_text,
    is_hmac_sha256,
    read_payload,
)

_GITHUB: Final = "github"
_PULL_REQUEST_ACTIONS: Final[Mapping[str, Literal["opened", "pushed", "closed", "reopened"]]] = {
    "opened": "opened",
    "synchronize": "pushed",
    "closed": "closed",
    "reopened": "reopened",
}
_ISSUE_ACTIONS: Final = frozenset({"opened", "reopened", "labeled"})
_MOST_LABELS: Final = 100
_MOST_PULL_REQUESTS: Final = 20


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
    html_url: str = ""
    state: Literal["open", "closed"] = "open"
    labels: tuple[_Label, ...] = ()
    pull_request: dict[str, object] | None = None


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
    id: int
    user: _User | None = None
    state: str = ""
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


class _PullRequestEvent(_Event):
    pull_request: _PullRequestFacts


class _ReviewEvent(_PullRequestEvent):
    review: _ReviewFacts


class _ReviewCommentEvent(_PullRequestEvent):
    comment: _CommentFacts


class _ChecksEvent(_Event):
    check_run: _CheckFacts | None = None
    check_suite: _CheckFacts | None = None


class _StatusEvent(_Event):
    sha: str
    context: str
    state: str


def _issue(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_IssueEvent, delivery)
    if event.action not in _ISSUE_ACTIONS or event.issue.pull_request is not None:
        return None
    labels = tuple(label.name for label in event.issue.labels[:_MOST_LABELS])
    return IssueChanged(
        forge=_GITHUB,
        repository=event.repository.html_url,
        number=event.issue.number,
        state=event.issue.state,
        labels=labels,
    )


def _comment(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_CommentEvent, delivery)
    if event.action != "created" or event.comment.user is None:
        return None
    return CommentWritten(
        forge=_GITHUB,
        repository=event.repository.html_url,
        number=event.issue.number,
        url=event.issue.html_url,
        is_on_pull_request=event.issue.pull_request is not None,
        comment_id=event.comment.id,
        author=event.comment.user.login,
        body=bounded_text(event.comment.body),
        created_at=event.comment.created_at,
    )


def _pull_request(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_PullRequestEvent, delivery)
    pull_request = event.pull_request
    is_merged = event.action == "closed" and bool(pull_request.merged)
    return PullRequestChanged(
        forge=_GITHUB,
        repository=event.repository.html_url,
        number=pull_request.number,
        url=pull_request.html_url,
        action="merged" if is_merged else _PULL_REQUEST_ACTIONS.get(event.action, "other"),
        head=pull_request.head.ref,
        head_sha=pull_request.head.sha,
        actor=event.sender.login,
    )


def _review(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_ReviewEvent, delivery)
    state = REVIEWS.get(event.review.state.upper())
    if event.action != "submitted" or state is None:
        return None
    return ReviewWritten(
        forge=_GITHUB,
        repository=event.repository.html_url,
        number=event.pull_request.number,
        url=event.pull_request.html_url,
        review_id=event.review.id,
        author=event.review.user.login if event.review.user else "ghost",
        state=state,
        commit=event.review.commit_id or "",
    )


def _review_comment(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_ReviewCommentEvent, delivery)
    if event.action != "created":
        return None
    return ReviewWritten(
        forge=_GITHUB,
        repository=event.repository.html_url,
        number=event.pull_request.number,
        url=event.pull_request.html_url,
        review_id=event.comment.id,
        author=event.comment.user.login if event.comment.user else "ghost",
    )


def _checks(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_ChecksEvent, delivery)
    facts = event.check_run or event.check_suite
    if event.action != "completed" or facts is None:
        return None
    return ChecksChanged(
        forge=_GITHUB,
        repository=event.repository.html_url,
        commit=facts.head_sha,
        name=(facts.name or "")[:200],
        state=CONCLUSIONS.get(facts.conclusion or "", "pending"),
        pull_requests=tuple(each.number for each in facts.pull_requests[:_MOST_PULL_REQUESTS]),
    )


def _status(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_StatusEvent, delivery)
    return ChecksChanged(
        forge=_GITHUB,
        repository=event.repository.html_url,
        commit=event.sha,
        name=event.context[:200],
        state=CONCLUSIONS.get(event.state, "pending"),
    )


_READERS: Final[Mapping[str, Callable[[Delivery], ForgeEvent | None]]] = {
    "issues": _issue,
    "issue_comment": _comment,
    "pull_request": _pull_request,
    "pull_request_review": _review,
    "pull_request_review_comment": _review_comment,
    "check_run": _checks,
    "check_suite": _checks,
    "status": _status,
}


def _is_signed(delivery: Delivery, secret: str) -> bool:
    algorithm, _, signature = delivery.header("x-hub-signature-256").partition("=")
    return algorithm == "sha256" and is_hmac_sha256(delivery.body, secret, signature)


def _read_event(delivery: Delivery) -> ForgeEvent | None:
    reader = _READERS.get(delivery.header("x-github-event"))
    return reader(delivery) if reader is not None else None


GITHUB_WEBHOOK: Final = WebhookKind(_is_signed, _read_event)
