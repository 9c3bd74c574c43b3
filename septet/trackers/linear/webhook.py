"""Webhooks of Linear, which report events in people's conversations with agents (*sessions*)."""

import time
from typing import Any, Final

from pydantic import Field
from pydantic_core import from_json

from septet.contracts.tracker import PROMPT_LIMIT, SessionPrompted, SessionStarted, TrackedIssue
from septet.forges.answers import Foreign
from septet.forges.events.webhooks import Delivery, is_hmac_sha256, read_payload

_MOST_AGE_SECONDS: Final = 60.0


def is_signed(delivery: Delivery, secret: str) -> bool:
    """Return whether Linear signed a delivery within the last minute."""
    if not is_hmac_sha256(delivery.body, secret, delivery.header("linear-signature")):
        return False
    try:
        body: Any = from_json(delivery.body)
        sent_at = body.get("webhookTimestamp") if isinstance(body, dict) else None
    except ValueError:
        return False
    if isinstance(sent_at, bool) or not isinstance(sent_at, int | float):
        return False
    return abs(time.time() - sent_at / 1000) <= _MOST_AGE_SECONDS


def read_event(delivery: Delivery) -> SessionStarted | SessionPrompted | None:
    """Return the event in a delivery; `None` if Septet has nothing to do for it.

    Raises:
        InvalidInputError: The delivery cannot be read.
    """
    if read_payload(_AnyEvent, delivery).type != "AgentSessionEvent":
        return None
    event = read_payload(_SessionEvent, delivery)
    session = event.agentSession
    if session.issue is None:
        return None
    issue = TrackedIssue(tracker="linear", id=session.issue.id, key=session.issue.identifier, session=session.id)
    if event.action == "created":
        return SessionStarted(issue=issue)
    activity = event.agentActivity
    if event.action != "prompted" or activity is None:
        return None
    if activity.content.type != "prompt" or activity.user.id == event.appUserId:  # the agent's own account
        return None
    return SessionPrompted(
        issue=issue,
        prompt_id=activity.id,
        author=activity.user.name[:200],
        body=activity.content.body[:PROMPT_LIMIT],
        is_stop=activity.signal == "stop",
    )


class _AnyEvent(Foreign):
    type: str


class _Issue(Foreign):
    id: str = Field(max_length=64)
    identifier: str = Field(max_length=40)


class _Session(Foreign):
    id: str = Field(max_length=64)
    issue: _Issue | None = None


class _Content(Foreign):
    type: str = ""
    body: str = ""


class _Author(Foreign):
    id: str
    name: str = ""


class _Activity(Foreign):
    id: str = Field(max_length=64)
    content: _Content
    signal: str | None = None
    user: _Author


class _SessionEvent(Foreign):
    action: str
    appUserId: str
    agentSession: _Session
    agentActivity: _Activity | None = None
