"""What forges send is read as events, once its signature was checked."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from fakes.webhooks import github_examples

from septet.errors import InvalidInputError
from septet.forges.webhook_kinds import WEBHOOK_KINDS
from septet.forges.webhooks import Delivery

HELLO = "https://github.com/Codertocat/Hello-World"
SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
PULL = {"forge": "github", "repository": HELLO, "number": 2, "url": f"{HELLO}/pull/2"}
EXPECTED: dict[tuple[str, str | None], dict[str, Any] | None] = {
    ("issues", "opened"): {"kind": "issue", "number": 1, "state": "open", "labels": ["bug"]},
    ("issues", "labeled"): {"kind": "issue", "number": 1, "state": "open", "labels": ["bug"]},
    ("issues", "unlabeled"): None,
    ("issue_comment", "created"): {
        "kind": "comment",
        "number": 1,
        "is_on_pull_request": False,
        "comment_id": 492700400,
        "author": "Codertocat",
        "body": "You are totally right! I'll get this fixed right away.",
        "created_at": "2019-05-15T15:20:21Z",
    },
    ("pull_request", "closed"): {**PULL, "kind": "pull_request", "action": "closed", "head": "changes"},
    ("pull_request", "synchronize"): {"kind": "pull_request", "action": "pushed"},
    ("pull_request_review", "submitted"): {**PULL, "kind": "review", "state": "commented", "commit": SHA},
    ("pull_request_review_comment", "created"): {**PULL, "kind": "review", "state": "commented"},
    ("check_run", "completed"): {"kind": "checks", "state": "failure", "name": "Octocoders-linter"},
    ("check_suite", "completed"): {"kind": "checks", "state": "success"},
    ("status", None): {"kind": "checks", "state": "success"},
}


def github(event: str, payload: dict[str, Any]) -> Delivery:
    """Return a delivery of GitHub's."""
    return Delivery({"x-github-event": event}, json.dumps(payload).encode())


@pytest.mark.parametrize(
    "example", github_examples(), ids=lambda each: f"{each['event']} {each['payload'].get('action')}"
)
def test_events_of_github(example: dict[str, Any]) -> None:
    """Each example of GitHub's own is the event that it tells of, and what asks for nothing is none."""
    payload = example["payload"]
    event = WEBHOOK_KINDS["github"].read_event(github(example["event"], payload))
    expected = EXPECTED[example["event"], payload.get("action")]
    assert (event is None) == (expected is None)
    if event is not None and expected is not None:
        told = event.model_dump(mode="json")
        assert {name: told[name] for name in expected} == expected


def test_what_is_no_event_of_github_is_refused() -> None:
    """An event that lacks what it must have names the place; one of another kind is passed over."""
    read = WEBHOOK_KINDS["github"].read_event
    with pytest.raises(InvalidInputError, match="repository: Field required"):
        read(github("issues", {"action": "opened", "issue": {"number": 1}}))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read(Delivery({"x-github-event": "issues"}, b"payload=%7B%7D"))
    assert read(github("star", {"action": "created"})) is None


def test_the_signature_of_github() -> None:
    """Only the secret's own HMAC-SHA256 over the very bytes is taken."""
    body, is_signed = b'{"a": 1}', WEBHOOK_KINDS["github"].is_signed
    good = hmac.new(b"secret", body, hashlib.sha256).hexdigest()

    def delivery(signature: str, content: bytes = body) -> Delivery:
        return Delivery({"x-hub-signature-256": signature}, content)

    assert is_signed(delivery(f"sha256={good}"), "secret")
    assert not is_signed(delivery(f"sha256={good}"), "another")
    assert not is_signed(delivery(f"sha256={good}", body + b" "), "secret")
    assert not is_signed(delivery(f"sha1={good}"), "secret")
    assert not is_signed(delivery("sha256=ä"), "secret")
    assert not is_signed(Delivery({}, body), "secret")
