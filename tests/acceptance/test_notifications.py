import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes.listening import QuietHandler, listening
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

pytestmark = pytest.mark.faces

SECRET = "the receiver knows it too"  # noqa: S105 -- of this test alone


@dataclass
class Receiver:
    """A receiver of webhooks that refuses the first events."""

    refusals: int
    events: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)
    address: str = ""

    def take(self, headers: dict[str, str], body: bytes) -> int:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        signature = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        if headers["webhook-signature"] != f"v1,{signature}":
            self.forged.append(headers["webhook-signature"])
        assert headers["content-type"] == "application/cloudevents+json"
        event = json.loads(body)
        if len(self.refused) < self.refusals:
            self.refused.append(event)
            return 503
        self.events.append(event)
        return 204

    def of(self, order: str) -> list[tuple[str, str]]:
        return [(event["type"], event["data"]["reason"]) for event in self.events if event["subject"] == order]


@contextmanager
def receiving(receiver: Receiver) -> Iterator[Receiver]:
    class Handler(QuietHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            self.answer(receiver.take(headers, body), {})

    with listening(Handler) as address:
        receiver.address = f"{address}/hook"
        yield receiver


def test_an_address_is_told_what_people_should_know(septet: Septet, origin: Origin) -> None:
    """Signed CloudEvents report a waiting plan, an end and a failure; a refused event comes again.

    The failure of an opening is reported as well.
    """
    with receiving(Receiver(refusals=1)) as receiver:
        hook = {"SEPTET_NOTIFY_URL": receiver.address, "SEPTET_NOTIFY_SECRET": SECRET}
        with septet.up(**hook):
            words = ("--repo", origin.bare, "--title", "Tell me", "--json")
            assert septet("run", *words, "--id", "wo-tell", "--approve-plan").code == 0
            until(lambda: receiver.of("wo-tell"))
            assert {event["id"] for event in receiver.refused} == {receiver.events[0]["id"]}
            assert septet("approve", "wo-tell", "--json").code == 0
            septet.scenario("wo-refused", {"steps": {"implement_plan": {"refuse": "No."}}})
            assert septet("run", *words, "--id", "wo-refused", "--wait").code == 1
            order = json.dumps({"repository": str(origin.bare), "title": "T", "base": "nowhere"})
            start = ("workflow", "start", "--type", "WorkOrder", "--task-queue", "septet", "--input", order)
            assert septet.temporal(*start, "-w", "wo-unopened").code == 0
            until(lambda: len(receiver.of("wo-tell")) > 1 and receiver.of("wo-refused"))
            until(lambda: receiver.of("wo-unopened"))
    waiting, completed = receiver.of("wo-tell")
    assert (waiting[0], completed) == ("septet.work_order.waiting", ("septet.work_order.completed", ""))
    assert waiting[1].endswith("waits for approval.")
    ((failed, reason),) = receiver.of("wo-refused")
    assert (failed, "No." in reason) == ("septet.work_order.failed", True)
    ((unopened, reason),) = receiver.of("wo-unopened")
    assert (unopened, "has no branch 'nowhere'" in reason) == ("septet.work_order.failed", True)
    first = receiver.events[0]
    assert {name: first[name] for name in ("specversion", "subject", "datacontenttype")} == {
        "specversion": "1.0",
        "subject": "wo-tell",
        "datacontenttype": "application/json",
    }
    assert "septet approve wo-tell" in first["data"]["remedy"]
    assert receiver.forged == []


def test_an_address_without_a_secret_is_refused(septet: Septet) -> None:
    """No event is sent unsigned: a command with such settings names the missing setting."""
    told = Septet(septet.root, extra={"SEPTET_NOTIFY_URL": "http://127.0.0.1:1"})("doctor", "--json")
    assert told.code == 2
    assert "SEPTET_NOTIFY_SECRET" in told.error["message"]
