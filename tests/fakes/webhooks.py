"""Forges that send events: bodies of the real forges, signed, each with its own id."""

import base64
import copy
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from fakes.forges.state import ForgeFake, Note, now
from fakes.septet_command import WITHIN_SECONDS

DATA = Path(__file__).parents[1] / "data" / "webhooks"
SECRET = "a secret of the webhooks"  # noqa: S105 -- of a forge on loopback


@cache
def github_examples() -> list[dict[str, Any]]:
    examples: list[dict[str, Any]] = json.loads((DATA / "github.json").read_text())["examples"]
    return examples


def github_example(event: str, action: str | None = None) -> dict[str, Any]:
    return next(
        copy.deepcopy(each["payload"])
        for each in github_examples()
        if each["event"] == event and each["payload"].get("action") == action
    )


@dataclass
class Sent:
    forge: str
    headers: dict[str, str]
    body: bytes

    def send(self, api: str, **headers: str) -> httpx.Response:
        return httpx.post(
            f"{api}/webhooks/{self.forge}",
            content=self.body,
            headers={**self.headers, **headers},
            trust_env=False,
            timeout=WITHIN_SECONDS,
        )


@dataclass
class Webhook:
    forge: ForgeFake
    secret: str = SECRET

    @property
    def page(self) -> str:
        return f"{self.forge.url}/{self.forge.project}"

    def labelled(self, number: int) -> Sent:
        raise NotImplementedError

    def commented(self, number: int, body: str, author: str = "ada") -> Sent:
        self.forge.add_comment(number, body, author)
        return self.comment(number, self.forge.issues[number].notes[-1])

    def commented_on_pull(self, number: int, body: str, author: str = "ada") -> Sent:
        return self.comment(number, self.forge.add_pull_note(number, author, body), is_on_pull=True)

    def comment(self, number: int, note: Note, *, is_on_pull: bool = False) -> Sent:
        raise NotImplementedError

    def merged(self, number: int) -> Sent:
        raise NotImplementedError


@dataclass
class GitHubWebhook(Webhook):
    def labelled(self, number: int) -> Sent:
        issue = self.forge.issues[number]
        payload = github_example("issues", "labeled")
        payload["issue"] |= {
            "number": number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "labels": [{"id": 1, "name": name} for name in issue.labels],
        }
        return self.delivery("issues", payload)

    def comment(self, number: int, note: Note, *, is_on_pull: bool = False) -> Sent:
        payload = github_example("issue_comment", "created")
        payload["issue"]["number"] = number
        if issue := self.forge.issues.get(number):
            payload["issue"] |= {"title": issue.title, "body": issue.body}
        if is_on_pull:
            payload["issue"] |= {"html_url": f"{self.page}/pull/{number}", "pull_request": {"url": "u"}}
        payload["comment"] |= {"id": note.id, "body": note.body, "created_at": now()}
        payload["comment"]["user"]["login"] = note.author
        return self.delivery("issue_comment", payload)

    def merged(self, number: int) -> Sent:
        payload = github_example("pull_request", "closed")
        payload["pull_request"] |= {"number": number, "html_url": f"{self.page}/pull/{number}", "merged": True}
        return self.delivery("pull_request", payload)

    def delivery(self, event: str, payload: dict[str, Any]) -> Sent:
        payload["repository"] |= {"html_url": self.page, "full_name": self.forge.project}
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


@dataclass
class GiteaWebhook(Webhook):
    """Gitea and Forgejo, by their documentation."""

    def labelled(self, number: int) -> Sent:
        payload = {"action": "label_updated", "issue": self._issue(number)}
        return self.delivery("issues", payload)

    def comment(self, number: int, note: Note, *, is_on_pull: bool = False) -> Sent:
        comment = {"id": note.id, "body": note.body, "user": {"login": note.author}, "created_at": now()}
        page = {"number": number, "html_url": f"{self.page}/pulls/{number}", "state": "open", "labels": []}
        issue = page if is_on_pull else self._issue(number)
        payload = {"action": "created", "issue": issue, "comment": comment, "is_pull": is_on_pull}
        return self.delivery("issue_comment", payload)

    def merged(self, number: int) -> Sent:
        pull = {"number": number, "html_url": f"{self.page}/pulls/{number}", "merged": True, "state": "closed"}
        return self.delivery("pull_request", {"action": "closed", "pull_request": pull})

    def _issue(self, number: int) -> dict[str, Any]:
        issue = self.forge.issues[number]
        return {
            "number": number,
            "html_url": f"{self.page}/issues/{number}",
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "labels": [{"name": name} for name in issue.labels],
        }

    def delivery(self, event: str, payload: dict[str, Any]) -> Sent:
        repository = {"full_name": self.forge.project, "html_url": self.page}
        body = json.dumps({**payload, "repository": repository, "sender": {"login": "ada"}}).encode()
        headers = {
            "Content-Type": "application/json",
            "X-Gitea-Event": event,
            "X-Gitea-Event-Type": event,
            "X-Gitea-Delivery": str(uuid4()),
            "X-Gitea-Signature": hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest(),
        }
        return Sent("gitea", headers, body)


@dataclass
class GitLabWebhook(Webhook):
    """GitLab, by its documentation, with a secret token, or with a signature for a secret that begins with `whsec_`."""

    def labelled(self, number: int) -> Sent:
        issue = self.forge.issues[number]
        labels = [{"title": name} for name in issue.labels]
        facts = {
            "iid": number,
            "action": "update",
            "state": "opened",
            "title": issue.title,
            "description": issue.body,
        }
        changes = {"labels": {"previous": [], "current": labels}}
        payload = {"object_kind": "issue", "object_attributes": facts, "labels": labels, "changes": changes}
        return self.delivery("Issue Hook", payload)

    def comment(self, number: int, note: Note, *, is_on_pull: bool = False) -> Sent:
        kind, of = ("merge_request", "MergeRequest") if is_on_pull else ("issue", "Issue")
        facts = {"id": note.id, "note": note.body, "noteable_type": of, "action": "create"}
        facts["created_at"] = now().replace("T", " ").replace("Z", " UTC")
        thing: dict[str, Any] = {"iid": number, "url": f"{self.page}/-/{kind}s/{number}"}
        if not is_on_pull and (issue := self.forge.issues.get(number)):
            thing |= {"title": issue.title, "description": issue.body}
        payload = {
            "object_kind": "note",
            "user": {"username": note.author},
            "object_attributes": facts,
            kind: thing,
        }
        return self.delivery("Note Hook", payload)

    def merged(self, number: int) -> Sent:
        facts = {
            "iid": number,
            "action": "merge",
            "state": "merged",
            "url": f"{self.page}/-/merge_requests/{number}",
        }
        return self.delivery("Merge Request Hook", {"object_kind": "merge_request", "object_attributes": facts})

    def delivery(self, event: str, payload: dict[str, Any]) -> Sent:
        project = {"web_url": self.page, "path_with_namespace": self.forge.project}
        body = json.dumps({"user": {"username": "ada"}, **payload, "project": project}).encode()
        headers = {
            "Content-Type": "application/json",
            "X-Gitlab-Event": event,
            "X-Gitlab-Event-UUID": str(uuid4()),
            "Idempotency-Key": str(uuid4()),
        }
        return Sent("gitlab", {**headers, **self._proof(headers["Idempotency-Key"], body)}, body)

    def _proof(self, name: str, body: bytes) -> dict[str, str]:
        if not self.secret.startswith("whsec_"):
            return {"X-Gitlab-Token": self.secret}
        stamp, key = str(int(time.time())), base64.b64decode(self.secret.removeprefix("whsec_"))
        signature = base64.b64encode(hmac.digest(key, f"{name}.{stamp}.".encode() + body, hashlib.sha256)).decode()
        return {"webhook-id": name, "webhook-timestamp": stamp, "webhook-signature": f"v1,{signature}"}


WEBHOOKS: dict[str, type[Webhook]] = {"github": GitHubWebhook, "gitlab": GitLabWebhook, "gitea": GiteaWebhook}
