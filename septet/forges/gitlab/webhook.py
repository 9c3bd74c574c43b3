"""What GitLab sends: signed as Standard Webhooks are where it has a signing token, else with a secret token."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Final, Literal

from septet.contracts.forge_events import (
    ChecksChanged,
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    PullRequestChanged,
    ReviewWritten,
)
from septet.contracts.issue_request import text_sha256
from septet.forges.forge import ReviewState
from septet.forges.webhook_events import MOST_LABELS, PullRequestAction
from septet.forges.webhooks import Delivery, ForeignEvent, WebhookKind, bounded_text, read_payload

_GITLAB: Final = "gitlab"
_SIGNING: Final = "whsec_"
_CLOCKS_DIFFER_SECONDS: Final = 300.0
"""A signed delivery that is older was sent by somebody who has caught it."""
_PULL_REQUEST_ACTIONS: Final[Mapping[str, PullRequestAction | Literal["merged"]]] = {
    "open": "opened",
    "close": "closed",
    "merge": "merged",
    "reopen": "reopened",
}
_PIPELINES: Final[Mapping[str, Literal["success", "failure"]]] = {
    "success": "success",
    "failed": "failure",
    "canceled": "failure",
}


class _User(ForeignEvent):
    username: str = ""


class _Label(ForeignEvent):
    title: str


class _Project(ForeignEvent):
    web_url: str


class _Commit(ForeignEvent):
    id: str = ""


class _Numbered(ForeignEvent):
    iid: int
    url: str = ""
    title: str | None = None
    description: str | None = None


class _Facts(ForeignEvent):
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
    source_branch: str = ""
    last_commit: _Commit = _Commit()
    oldrev: str = ""
    sha: str = ""
    status: str = ""


class _Event(ForeignEvent):
    user: _User = _User()
    project: _Project
    object_attributes: _Facts
    labels: tuple[_Label, ...] = ()
    changes: dict[str, object] = {}  # noqa: RUF012 -- pydantic copies it
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
        created_at=_iso(facts.created_at),
        text_sha256=_text_of(thing),
    )


def _merge_request(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts = event.object_attributes
    if (state := _reviewed(event)) is not None:
        return ReviewWritten(
            forge=_GITLAB,
            repository=event.project.web_url,
            number=facts.iid,
            url=facts.url,
            author=event.user.username,
            state=state,
            commit=facts.last_commit.id,
        )
    is_pushed = facts.action == "update" and bool(facts.oldrev)
    return PullRequestChanged(
        forge=_GITLAB,
        repository=event.project.web_url,
        number=facts.iid,
        url=facts.url,
        action="pushed" if is_pushed else _PULL_REQUEST_ACTIONS.get(facts.action, "other"),
        head=facts.source_branch,
        head_sha=facts.last_commit.id,
        actor=event.user.username,
    )


def _reviewed(event: _Event) -> ReviewState | None:
    """Return what somebody thinks of it now, where the event tells of that."""
    if event.object_attributes.action in {"approved", "approval"}:
        return "approved"
    is_changed = event.object_attributes.action == "update" and "reviewers" in event.changes
    return "commented" if is_changed else None  # whether changes are requested, the API tells


def _pipeline(delivery: Delivery) -> ForgeEvent | None:
    event = read_payload(_Event, delivery)
    facts = event.object_attributes
    if (state := _PIPELINES.get(facts.status)) is None:
        return None
    numbers = (event.merge_request.iid,) if event.merge_request is not None else ()
    return ChecksChanged(
        forge=_GITLAB,
        repository=event.project.web_url,
        commit=facts.sha,
        name="pipeline",
        state=state,
        pull_requests=numbers,
    )


def _iso(time_of_gitlab: str) -> str:
    """Return a time as ISO 8601: GitLab writes `2026-01-01 00:00:00 UTC` in some events."""
    return time_of_gitlab.replace(" UTC", "+00:00").replace(" ", "T", 1)


def _is_signed(delivery: Delivery, secret: str) -> bool:
    if secret.startswith(_SIGNING):
        return _is_standard(delivery, secret)
    return hmac.compare_digest(delivery.header("x-gitlab-token").encode(), secret.encode())


def _is_standard(delivery: Delivery, secret: str) -> bool:
    """Say whether a delivery is signed as Standard Webhooks say, not long ago."""
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
