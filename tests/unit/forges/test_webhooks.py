"""The worker reads webhooks of forges as events after it has checked their signatures."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from fakes.forges.state import ForgeFake, Note
from fakes.webhooks import SECRET, WEBHOOKS, Sent, github_examples

from septet.errors import InvalidInputError
from septet.forges.events.webhooks import Delivery
from septet.forges.kinds import WEBHOOK_KINDS

HELLO = "https://github.com/Codertocat/Hello-World"
SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
PULL = {"kind": "pull_request", "forge": "github", "repository": HELLO, "url": f"{HELLO}/pull/2"}
CHECKS = {"kind": "pull_request", "url": "", "look": "followers"}
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
    ("pull_request", "closed"): {**PULL, "look": "watches"},
    ("pull_request", "synchronize"): {**PULL, "look": "followers"},
    ("pull_request_review", "submitted"): {**PULL, "look": "followers"},
    ("pull_request_review_comment", "created"): {**PULL, "look": "followers"},
    ("check_run", "completed"): {**CHECKS, "commit": SHA},
    ("check_suite", "completed"): {**CHECKS, "commit": SHA},
    ("status", None): CHECKS,
}


def github(event: str, payload: dict[str, Any]) -> Delivery:
    """Return a webhook delivery of GitHub."""
    return Delivery({"x-github-event": event}, json.dumps(payload).encode())


@pytest.mark.parametrize(
    "example", github_examples(), ids=lambda each: f"{each['event']} {each['payload'].get('action')}"
)
def test_events_of_github(example: dict[str, Any]) -> None:
    """Each of GitHub's published examples is read as its event, or as no event if it requires no work."""
    payload = example["payload"]
    event = WEBHOOK_KINDS["github"].read_event(github(example["event"], payload))
    expected = EXPECTED[example["event"], payload.get("action")]
    assert (event is None) == (expected is None)
    if event is not None and expected is not None:
        told = event.model_dump(mode="json")
        assert {name: told[name] for name in expected} == expected


def test_what_says_nothing_new_asks_nobody_to_look() -> None:
    """A new pull request and a running check cause no poll; they only show that the webhook works."""
    read = WEBHOOK_KINDS["github"].read_event
    repository = {"html_url": HELLO}
    opened = {"action": "opened", "repository": repository, "pull_request": {"html_url": f"{HELLO}/pull/2"}}
    runs = {"repository": repository, "sha": SHA, "state": "pending"}
    for event in (read(github("pull_request", opened)), read(github("status", runs))):
        assert event is not None
        assert event.model_dump()["look"] == "none"


def test_what_is_no_event_of_github_is_refused() -> None:
    """The error for an event without a required field names the field; another kind of event is no event."""
    read = WEBHOOK_KINDS["github"].read_event
    with pytest.raises(InvalidInputError, match="repository: Field required"):
        read(github("issues", {"action": "opened", "issue": {"number": 1}}))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read(Delivery({"x-github-event": "issues"}, b"payload=%7B%7D"))
    assert read(github("star", {"action": "created"})) is None


def test_the_signature_of_github() -> None:
    """A signature counts only for the same bytes, and only with the name of its hash."""
    body, is_signed = b'{"a": 1}', WEBHOOK_KINDS["github"].is_signed
    good = hmac.new(b"secret", body, hashlib.sha256).hexdigest()

    def delivery(signature: str, content: bytes = body) -> Delivery:
        return Delivery({"x-hub-signature-256": signature}, content)

    assert is_signed(delivery(f"sha256={good}"), "secret")
    assert not is_signed(delivery(f"sha256={good}", body + b" "), "secret")
    assert not is_signed(delivery(f"sha1={good}"), "secret")
    assert not is_signed(delivery("sha256=ä"), "secret")


SIGNING = "whsec_" + base64.b64encode(b"a key of 32 bytes of a webhook's").decode()


def received(sent: Sent, **headers: str) -> Delivery:
    """Return the delivery with the headers that a server receives."""
    return Delivery({name.lower(): value for name, value in {**sent.headers, **headers}.items()}, sent.body)


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
@pytest.mark.parametrize("secret", [SECRET, SIGNING])
def test_each_forge_is_known_by_its_own_proof(forge: str, secret: str) -> None:
    """Only a webhook's secret proves its delivery, and all three forges' deliveries become the same events."""
    fake = ForgeFake(url="https://forge.example")
    number = fake.add_issue("Totals are wrong", labels=("septet",))
    webhook, kind = WEBHOOKS[forge](fake, secret), WEBHOOK_KINDS[forge]
    issue, comment = webhook.labelled(number), webhook.comment(number, Note(7, "ada", "/septet run"))
    merged = webhook.merged(3)
    for sent in (issue, comment, merged):
        assert kind.is_signed(received(sent), secret)
        assert not kind.is_signed(received(sent), "another secret")
        assert not kind.is_signed(received(sent), "whsec_bm90IGl0")
        assert not kind.is_signed(Delivery({}, sent.body), secret)
    here = {"forge": forge, "repository": "https://forge.example/o/foo.js"}

    def told(sent: Sent) -> dict[str, Any]:
        event = kind.read_event(received(sent))
        assert event is not None
        return event.model_dump(mode="json")

    assert told(issue).items() >= {**here, "kind": "issue", "number": number, "state": "open"}.items()
    assert told(issue)["labels"] == ["septet"]
    expected = {"kind": "comment", "number": number, "comment_id": 7, "author": "ada", "body": "/septet run"}
    assert told(comment).items() >= {**here, **expected, "is_on_pull_request": False}.items()
    assert told(merged)["url"].endswith("/3")
    assert told(merged).items() >= {**here, "kind": "pull_request", "look": "merged"}.items()
    assert kind.read_event(Delivery({}, b"")) is None


def test_a_signed_delivery_of_gitlab_does_not_come_late() -> None:
    """A delivery of GitLab with a signing token is refused if it is old or has no time."""
    webhook = WEBHOOKS["gitlab"](ForgeFake(url="https://forge.example"), SIGNING)
    sent, is_signed = webhook.merged(3), WEBHOOK_KINDS["gitlab"].is_signed
    stamp, key = "1000000000", base64.b64decode(SIGNING.removeprefix("whsec_"))
    signed = f"{sent.headers['webhook-id']}.{stamp}.".encode() + sent.body
    old = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    late = {"webhook-timestamp": stamp, "webhook-signature": f"v1,{old}"}
    assert not is_signed(received(sent, **late), SIGNING)
    assert not is_signed(received(sent, **{"webhook-timestamp": "soon"}), SIGNING)
    both = {"webhook-signature": f"v1,{old} {sent.headers['webhook-signature']}"}
    assert is_signed(received(sent, **both), SIGNING)
