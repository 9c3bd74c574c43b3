"""Read webhooks: check the signature first, and then parse the event in the body.

GitHub, Gitea and Forgejo send events in one form, with different names of kinds and actions.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypedDict, TypeVar

from pydantic import ValidationError

from septet.contracts.forge_events import (
    EVENT_TEXT_LIMIT,
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    Look,
    PullRequestTouched,
)
from septet.contracts.order import text_sha256
from septet.errors import InvalidInputError
from septet.forges.answers import Foreign

F = TypeVar("F", bound="Foreign")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A received request of a webhook; the request is untrusted until its signature is checked."""

    headers: Mapping[str, str]
    """The headers by name, in lower case."""
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return a header; empty if there is none."""
        return self.headers.get(name, "")

    @property
    def digest(self) -> str:
        """A hash of the body, by which Septet identifies the delivery: an id in the headers is not signed."""
        return hashlib.sha256(self.body).hexdigest()[:32]


Reader = Callable[[Delivery], ForgeEvent | None]
"""Reads one kind of event; returns `None` if Septet has nothing to do for it."""


@dataclass(frozen=True, slots=True)
class WebhookKind:
    """How one kind of forge sends its events."""

    is_signed: Callable[[Delivery, str], bool]
    """Returns whether the sender of a delivery knows the secret."""
    event_header: str
    """The header with the kind of the event, in lower case."""
    readers: Mapping[str, Reader]

    def read_event(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event in a delivery; `None` if Septet has nothing to do for it.

        Raises:
            InvalidInputError: The delivery cannot be read.
        """
        reader = self.readers.get(delivery.header(self.event_header))
        return reader(delivery) if reader is not None else None


def is_hmac_sha256(body: bytes, secret: str, signature: str) -> bool:
    """Return whether a hexadecimal signature is the HMAC of a body, compared in constant time."""
    expected = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
    return hmac.compare_digest(expected.encode(), signature.strip().lower().encode())


def read_payload(form: type[F], delivery: Delivery) -> F:
    """Return the body of a delivery as a value of type `form`; check the signature before this call.

    Raises:
        InvalidInputError: The body is not an event of this form.
    """
    try:
        return form.model_validate_json(delivery.body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        message = f"The delivery cannot be read: {where}: {first['msg']}."
        raise InvalidInputError(message, remedy="Set the webhook to send JSON (`application/json`).") from error


def bounded_text(text: str | None) -> str:
    """Return a text, cut to the limit for texts in events."""
    return (text or "")[:EVENT_TEXT_LIMIT]


MOST_LABELS: Final = 100


class _User(Foreign):
    login: str = ""


class _Label(Foreign):
    name: str


class _Repository(Foreign):
    html_url: str


class _Numbered(Foreign):
    number: int


class _IssueFacts(Foreign):
    number: int
    title: str | None = None
    body: str | None = None
    html_url: str = ""
    state: Literal["open", "closed"] = "open"
    labels: tuple[_Label, ...] | None = None
    pull_request: dict[str, object] | None = None

    @property
    def text_sha256(self) -> str:
        """The hash of title and body; empty if the event has no title."""
        return text_sha256(self.title, self.body) if self.title is not None else ""


class _CommentFacts(Foreign):
    id: int
    user: _User | None = None
    body: str | None = None
    created_at: str = ""


class _PullRequestFacts(Foreign):
    html_url: str
    merged: bool | None = None


class _CheckFacts(Foreign):
    head_sha: str
    pull_requests: tuple[_Numbered, ...] = ()


class _Event(Foreign):
    action: str = ""
    repository: _Repository
    sender: _User = _User()


class _IssueEvent(_Event):
    issue: _IssueFacts


class _CommentEvent(_IssueEvent):
    comment: _CommentFacts
    is_pull: bool = False
    """Whether the comment is on a pull request, on Gitea; on GitHub `issue.pull_request` is present instead."""


class _PullRequestEvent(_Event):
    pull_request: _PullRequestFacts


class _ChecksEvent(_Event):
    check_run: _CheckFacts | None = None
    check_suite: _CheckFacts | None = None


class _StatusEvent(_Event):
    sha: str
    state: str


class _Origin(TypedDict):
    forge: str
    repository: str


@dataclass(frozen=True, slots=True)
class EventForm:
    """The names that one forge uses in its events; the methods read the events."""

    forge: str
    issue_actions: frozenset[str]
    """The actions after which an issue can become work."""
    push_action: str
    """The action for new commits of a pull request."""
    review_actions: frozenset[str]
    """The actions for a new review or a new comment on a line."""

    def issue(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event of a changed issue."""
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
        """Return the event of a new comment on an issue or a pull request."""
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
        """Return the event of a changed pull request."""
        event = read_payload(_PullRequestEvent, delivery)
        look: Look = "followers" if event.action == self.push_action else "none"
        if event.action in {"closed", "reopened"}:
            is_merged = event.action == "closed" and bool(event.pull_request.merged)
            look = "merged" if is_merged else "watches"
        return PullRequestTouched(**self._origin(event), url=event.pull_request.html_url, look=look)

    def review(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event of a review of a pull request, or of a comment on a line."""
        event = read_payload(_PullRequestEvent, delivery)
        if event.action not in self.review_actions:
            return None
        return PullRequestTouched(**self._origin(event), url=event.pull_request.html_url, look="followers")

    def checks(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event of a completed check, or of a completed suite of an App's checks."""
        event = read_payload(_ChecksEvent, delivery)
        facts = event.check_run or event.check_suite
        if event.action != "completed" or facts is None:
            return None
        numbers = tuple(each.number for each in facts.pull_requests[:20])
        origin = self._origin(event)
        return PullRequestTouched(**origin, commit=facts.head_sha, pull_requests=numbers, look="followers")

    def status(self, delivery: Delivery) -> ForgeEvent | None:
        """Return the event of a status on a commit."""
        event = read_payload(_StatusEvent, delivery)
        look: Look = "none" if event.state == "pending" else "followers"
        return PullRequestTouched(**self._origin(event), commit=event.sha, look=look)

    def _origin(self, event: _Event) -> _Origin:
        return {"forge": self.forge, "repository": event.repository.html_url}


def common_readers(form: EventForm) -> dict[str, Reader]:
    """Return functions that read the events of GitHub, Gitea and Forgejo, by kind."""
    return {
        "issues": form.issue,
        "issue_comment": form.comment,
        "pull_request": form.pull_request,
        "status": form.status,
    }
