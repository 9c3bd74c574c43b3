"""Linear's own SDK (npm `@linear/sdk`) accepts the fake of Linear, in all calls that Septet makes."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.trackers.linear import ADA, APP, Fault, LinearFake, serving_linear
from fakes.webhooks import Sent

from septet.contracts.tracker import MessageKind, SessionMessage, TrackedIssue
from septet.forges.http.pauses import PAUSES
from septet.trackers.linear.api import LinearApi
from septet.trackers.linear.tracker import LinearTracker
from septet.trackers.tracker import IssueMark

pytestmark = pytest.mark.faces
SCRIPT = Path(__file__).parents[1] / "fakes" / "trackers" / "sdk.mjs"


@pytest.fixture
def linear() -> Iterator[LinearFake]:
    with serving_linear(LinearFake()) as fake:
        comments = [
            {"body": "Since May.", "createdAt": "2026-05-02T00:00:00.000Z"},
            {"body": "Yes.", "createdAt": "2026-05-03T00:00:00.000Z"},
        ]
        fake.add_issue("Totals are wrong", "By one.", labels=("bug",), comments=comments)
        fake.set_label(fake.issues[0], "bug", actor=ADA)
        fake.set_label(fake.issues[0], "ours", botActor={"name": "GitHub", "type": "github", "id": "bot"})
        fake.delegate(fake.issues[0])
        yield fake
        PAUSES.clear()


def sdk(linear: LinearFake, does: str, **more: Any) -> Any:
    asked = {
        "does": does, "url": linear.url, "token": linear.token, "issue": linear.issues[0]["id"],
        "session": next(iter(linear.sessions)), **more,
    }  # fmt: skip
    done = subprocess.run(
        ["node", str(SCRIPT), json.dumps(asked)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{done.stderr[-2000:]} (npm ci --prefix tests/npm)"
    return json.loads(done.stdout)


def test_the_sdk_reads_what_septet_wrote(linear: LinearFake) -> None:
    """The SDK reads issue, mark, messages of each kind, links and state as Septet wrote them."""
    tracker = LinearTracker(LinearApi(linear.token, linear.url))
    session = next(iter(linear.sessions))
    issue = tracker.read_issue("ENG-1")
    tracker.put_mark(issue, IssueMark("wo-linear-eng-1", "session/linear/1"))
    kinds: tuple[MessageKind, ...] = ("thought", "action", "elicitation", "error", "response")
    for kind in kinds:
        message = SessionMessage(
            issue=TrackedIssue(tracker="linear", id=issue.id, session=session), key=kind, kind=kind, text=f"a {kind}",
            action="look" * (kind == "action"), parameter="here" * (kind == "action"),
            plan_sha256="0" * 64 if kind == "elicitation" else "",
        )  # fmt: skip
        tracker.say(message)
        tracker.say(message)
    tracker.attach(issue.id, session, "https://example.com/pull/1", "Pull request")
    tracker.mark_started(issue.id)

    seen = sdk(linear, "read")
    assert seen["issue"] == {"id": issue.id, "identifier": "ENG-1", "title": issue.title, "body": issue.body}
    assert (seen["viewer"], seen["team"], seen["labels"]) == (APP["id"], issue.group, list(issue.labels))
    assert seen["comments"] == [each.body for each in reversed(issue.comments)] == ["Yes.", "Since May."]
    assert (seen["state"], seen["status"]) == ("started", "complete")
    assert [float(each.number) for each in tracker.open_issues("ENG", "bug")] == seen["labelled"] == [1.0]
    assert seen["delegate"] == APP["id"]
    assert seen["history"] == [{"by": "GitHub", "added": ["ours"]}, {"by": ADA["id"], "added": ["bug"]}]
    assert [tracker.label_setter(issue.id, label).name for label in ("ours", "bug")] == [
        "GitHub",
        ADA["displayName"],
    ]
    assert min(seen["started"]) == next(iter(linear.issues))["state"]["position"]
    assert seen["attachments"] == [
        {
            "url": f"{issue.url}#septet-wo-linear-eng-1",
            "title": "Septet work order wo-linear-eng-1",
            "metadata": {"claimant": "session/linear/1"},
        },
        {"url": "https://example.com/pull/1", "title": "Pull request", "metadata": {}},
    ]
    assert seen["links"] == ["https://example.com/pull/1"]
    assert [(each["kind"], each["text"], each["signal"]) for each in seen["activities"]] == [
        ("AgentActivityThoughtContent", "a thought", None),
        ("AgentActivityActionContent", "look here a action", None),
        ("AgentActivityElicitationContent", "a elicitation", "select"),
        ("AgentActivityErrorContent", "a error", None),
        ("AgentActivityResponseContent", "a response", None),
    ]
    assert set(linear.refused) == {"Entity already exists"}, "each message was sent twice, and is there once"


def test_septet_reads_what_the_sdk_wrote(linear: LinearFake) -> None:
    """The SDK writes messages, attachments, links and states with its own documents, and the fake accepts them."""
    started = linear.states_of("started")
    wrote = sdk(linear, "write", state=started[0]["id"])
    assert wrote == {"created": [True] * 5, "attached": ["Second"], "moved": started[0]["id"]}
    session = next(iter(linear.sessions))
    assert linear.said(session)[0] == ("thought", "From the SDK.")
    assert linear.sessions[session]["status"] == "complete"
    tracker = LinearTracker(LinearApi(linear.token, linear.url))
    assert tracker.find_mark("ENG-1") is None, "an attachment of another kind is no mark"
    assert linear.refused == []


def test_the_sdk_understands_how_the_fake_refuses(linear: LinearFake) -> None:
    """A missing object is the SDK's invalid input, and a limit is its rate limit with the same reset."""
    resets = int(time.time() * 1000) + 60_000
    headers = {"x-ratelimit-requests-remaining": "0", "x-ratelimit-requests-reset": str(resets)}
    linear.faults.append(Fault(about="query viewer", status=400, code="RATELIMITED", headers=headers))
    assert sdk(linear, "refuse") == [
        {"type": "InvalidInput", "resets": None},
        {"type": "Ratelimited", "resets": resets},
    ]


def test_the_sdk_accepts_the_fake_s_webhooks(linear: LinearFake) -> None:
    """Deliveries are signed as the SDK expects, and the SDK refuses the deliveries that Septet refuses."""
    session = next(iter(linear.sessions))
    created = linear.delegate(linear.issues[0])
    prompted = linear.prompt(session, "approve")
    forged = Sent("linear", prompted.headers, prompted.body.replace(b"approve", b"approvE"))
    old = linear.sign(json.loads(created.body) | {"webhookTimestamp": int((time.time() - 120) * 1000)})
    sent = [
        {"body": each.body.decode(), "signature": each.headers["Linear-Signature"]}
        for each in (created, prompted, forged, old)
    ]
    told = sdk(linear, "verify", deliveries=sent, secret=linear.secret)
    assert told == [
        {"type": "AgentSessionEvent", "action": "created", "session": list(linear.sessions)[-1]},
        {"type": "AgentSessionEvent", "action": "prompted", "session": session},
        {"refused": "Invalid webhook signature"},
        {"refused": "Invalid webhook timestamp"},
    ]
