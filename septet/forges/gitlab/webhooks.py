"""The webhooks of GitLab: their signatures, and their events in the common form."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from septet.contracts.forge_events import CommentWritten, ForgeEvent, IssueChanged, Look, PullRequestTouched
from septet.contracts.order import text_sha256
from septet.forges.answers import Foreign
from septet.forges.events.webhooks import (
    MOST_LABELS,
    Delivery,
    WebhookKind,
    bounded_text,
    read_payload,
)

_GITLAB: Final = "gitlab"
_SIGNING: Final = "whsec_"
_CLOCKS_DIFFER_SECONDS: Final = 300.0
"""The greatest age of an accepted delivery in seconds; an older one may be a replay."""
_LOOKS: Final[Mapping[str, Look]] = {
    "merge": "merged",
    "close": "watches",
    "reopen": "watches",
    "approved": "followers",
    "approval": "followers",
}
"""For each action on a merge request, the watches that must then read the merge request's state."""


class _User(Foreign):
    username: str = ""


class _Label(Foreign):
    title: str


class _Project(Foreign):
    web_url: str


class _Numbered(Foreign):
    iid: int
    url: str = ""
    title: str | None = None
    description: str | None = None


class _Facts(Foreign):
    id: int = 0
    iid: int = 0
    url: str = ""
    title: str | None = None
    description: str | None = None
    action: str = ""
    state: str = ""
    note: str | None = None
    noteable_type: str = ""
    system: bool = False
    created_at: str = ""
    oldrev: str = ""
    sha: str = ""
    status: str = ""


class _Event(Foreign):
    user: _User = _User()
    project: _Project
    object_attributes: _Facts
    labels: tuple[_Label, ...] = ()
    changes: dict[str, object] = Field(default_factory=dict)
    issue: _Numbered | None = None
    merge_request: _Numbered | None = None


def _issue(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts = event.object_attributes
    if facts.action not in {"open", "reopen"} and not (facts.action == "update" and "labels" in event.changes):
        return None
    return IssueChanged(
        forge=_GITLAB,
        repository=event.project.web_url,
        number=facts.iid,
        state="open" if facts.state == "opened" else "closed",
        labels=tuple(label.title for label in event.labels[:MOST_LABELS]),
        actor=event.user.username,
        text_sha256=_text_of(facts),
    )


def _text_of(thing: _Numbered | _Facts) -> str:
    return text_sha256(thing.title, thing.description) if thing.title is not None else ""


def _note(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts, thing = event.object_attributes, event.issue or event.merge_request
    if thing is None or facts.system or facts.action not in {"", "create"}:
        return None
    return CommentWritten(
        forge=_GITLAB,
        repository=event.project.web_url,
        number=thing.iid,
        url=thing.url,
        is_on_pull_request=event.issue is None,
        comment_id=facts.id,
        author=event.user.username,
        body=bounded_text(facts.note),
        # GitLab writes `2026-01-01 00:00:00 UTC` in some events.
        created_at=facts.created_at.replace(" UTC", "+00:00").replace(" ", "T", 1),
        text_sha256=_text_of(thing),
    )


def _merge_request(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts = event.object_attributes
    is_news = facts.action == "update" and (bool(facts.oldrev) or "reviewers" in event.changes)
    look = "followers" if is_news else _LOOKS.get(facts.action, "none")
    return PullRequestTouched(forge=_GITLAB, repository=event.project.web_url, url=facts.url, look=look)


def _pipeline(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts, request = event.object_attributes, event.merge_request
    if facts.status not in {"success", "failed", "canceled"}:
        return None
    return PullRequestTouched(
        forge=_GITLAB,
        repository=event.project.web_url,
        commit=facts.sha,
        pull_requests=(request.iid,) if request is not None else (),
        look="followers",
    )


def _is_signed(delivery: Delivery, secret: str) -> bool:
    """Return whether a delivery has the secret token, or a recent signature of Standard Webhooks."""
    if not secret.startswith(_SIGNING):
        return hmac.compare_digest(delivery.header("x-gitlab-token").encode(), secret.encode())
    stamp, signatures = delivery.header("webhook-timestamp"), delivery.header("webhook-signature").split()
    if not stamp.isdecimal() or abs(time.time() - int(stamp)) > _CLOCKS_DIFFER_SECONDS:
        return False
    try:
        key = base64.b64decode(secret.removeprefix(_SIGNING))
    except ValueError:
        return False
    signed = f"{delivery.header('webhook-id')}.{stamp}.".encode() + delivery.body
    expected = f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
    return any(hmac.compare_digest(expected.encode(), each.encode()) for each in signatures)


GITLAB_WEBHOOK: Final = WebhookKind(
    is_signed=_is_signed,
    event_header="x-gitlab-event",
    readers={
        "Issue Hook": _issue,
        "Note Hook": _note,
        "Merge Request Hook": _merge_request,
        "Pipeline Hook": _pipeline,
    },
)
