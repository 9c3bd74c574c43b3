"""Forges that send their events: bodies as the real ones send them, signed, with an id of their own."""

import copy
import hashlib
import hmac
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from fakes.forges.state import ForgeFake
from fakes.septet_command import WITHIN_SECONDS

DATA = Path(__file__).parents[1] / "data" / "webhooks"
SECRET = "a secret of the webhooks"  # noqa: S105 -- of a forge on loopback


@cache
def github_examples() -> list[dict[str, Any]]:
    """Return the examples of what GitHub sends."""
    examples: list[dict[str, Any]] = json.loads((DATA / "github.json").read_text())["examples"]
    return examples


def github_example(event: str, action: str | None = None) -> dict[str, Any]:
    """Return the body of one event, to be changed."""
    return next(
        copy.deepcopy(each["payload"])
        for each in github_examples()
        if each["event"] == event and each["payload"].get("action") == action
    )


@dataclass
class Sent:
    """A delivery that can be sent, again and again."""

    forge: str
    headers: dict[str, str]
    body: bytes

    def send(self, api: str, **headers: str) -> httpx.Response:
        """Send it, with other headers where some are named."""
        return httpx.post(
            f"{api}/webhooks/{self.forge}",
            content=self.body,
            headers={**self.headers, **headers},
            trust_env=False,
            timeout=WITHIN_SECONDS,
        )


@dataclass
class GitHubWebhook:
    """GitHub, as it sends the events of one repository."""

    forge: ForgeFake
    secret: str = SECRET

    def labelled(self, number: int, label: str = "septet") -> Sent:
        """Return the delivery that an issue was given a label."""
        issue = self.forge.issues[number]
        payload = github_example("issues", "labeled")
        payload["issue"] |= {
            "number": number,
            "title": issue.title,
            "state": issue.state,
            "labels": [{"id": 1, "name": name} for name in issue.labels],
        }
        payload["label"]["name"] = label
        return self.delivery("issues", payload)

    def delivery(self, event: str, payload: dict[str, Any]) -> Sent:
        """Return a signed delivery of an event of this repository."""
        payload["repository"] |= {
            "html_url": f"{self.forge.url}/{self.forge.project}",
            "full_name": self.forge.project,
        }
        body = json.dumps(payload).encode()
        signature = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/044aadd",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid4()),
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        return Sent("github", headers, body)
