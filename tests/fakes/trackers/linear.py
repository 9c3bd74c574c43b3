"""Linear on loopback: issues, attachments and sessions of agents, over a part of its own schema."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from fakes.git_http import body_of
from fakes.listening import QuietHandler, listening
from fakes.trackers.schema import deviations, resolve, schema
from fakes.webhooks import Sent
from graphql import GraphQLError, graphql_sync

SECRET = "a secret of Linear's"  # noqa: S105 -- of a fake on loopback
TOKEN = "lin_api_of_the_fake"  # noqa: S105
ADA = {"id": str(uuid4()), "name": "Ada", "displayName": "ada", "email": "ada@example.com", "url": "https://l/ada"}
APP = {
    "id": str(uuid4()),
    "name": "Septet",
    "displayName": "septet",
    "app": True,
    "email": "",
    "url": "https://l/s",
}
EVE = ADA | {"id": str(uuid4()), "name": "Eve", "displayName": "eve", "email": "eve@example.com", "guest": True}
_STATES = {"thought": "active", "action": "active", "elicitation": "awaitingInput"}
_ENDS = {"response": "complete", "error": "error"}
_FIELDS = {
    "action": {"type", "action", "parameter", "result"},
    **{kind: {"type", "body"} for kind in ("thought", "elicitation", "response", "error")},
}
_OPTIONAL = {"result"}


@dataclass
class Fault:
    about: str
    """A part of the document of the request that gets the answer."""
    status: int = 503
    after: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""
    drops: bool = False


@dataclass
class LinearFake:
    """One workspace with one team, `ENG`."""

    token: str = TOKEN
    secret: str = SECRET
    url: str = ""
    viewer: dict[str, Any] = field(default_factory=lambda: APP)
    page: int = 50
    team: dict[str, Any] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    activities: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """The received requests: documents with their variables, as JSON."""
    refused: list[str] = field(default_factory=list)
    """The messages of errors that no fault made."""
    faults: list[Fault] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Give the team its states of work."""
        kinds = ("backlog", "unstarted", "started", "started", "completed", "canceled")
        states = [_node(type=kind, name=kind, position=float(9 - at)) for at, kind in enumerate(kinds)]
        self.team = _node(key="ENG", name="Engineering", displayName="Engineering")
        self.team["states"] = lambda **given: _connection(
            [each for each in states if _fits(each["type"], (given.get("filter") or {}).get("type"))]
        )
        self._states = {each["id"]: each for each in states}

    def add_issue(self, title: str, description: str = "", **more: Any) -> dict[str, Any]:
        number = len(self.issues) + 1
        comments: list[dict[str, Any]] = more.pop("comments", [])
        labels = [_node(name=name) for name in more.pop("labels", ())]
        changes: list[dict[str, Any]] = []
        issue = _node(
            identifier=f"ENG-{number}", number=float(number), title=title, description=description,
            url=f"https://linear.app/septet/issue/ENG-{number}/slug", team=self.team,
            state=next(each for each in self._states.values() if each["type"] == "backlog"), **{"creator": ADA} | more,
        )  # fmt: skip
        issue["labels"] = lambda **_: _connection(labels)
        issue["history"] = lambda **given: self._page(changes[::-1], **given)
        issue["change"] = lambda **fields: changes.append(
            _node(issue=issue, actorId=(fields.get("actor") or {}).get("id"), **fields)
        )
        issue["comments"] = lambda **_: _connection([_node(issue=issue, **each) for each in reversed(comments)])
        issue["attachments"] = lambda **_: _connection(self.attached(issue))
        self.issues.append(issue)
        return issue

    def set_label(self, issue: dict[str, Any], label: str, **by: Any) -> None:
        """Let an account set a label: a user as `actor`, an app as `botActor`, or an unknown author."""
        known = next((each for each in issue["labels"]()["nodes"] if each["name"] == label), None)
        if known is None:
            known = _node(name=label)
            issue["labels"]()["nodes"].append(known)
        issue["change"](addedLabels=[known], addedLabelIds=[known["id"]], **by)

    def states_of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self._states.values() if each["type"] == kind]

    def attached(self, issue: dict[str, Any]) -> list[dict[str, Any]]:
        return [each for each in self.attachments if each["issue"] is issue]

    def said(self, session: str) -> list[tuple[str, str]]:
        mine = [each for each in self.activities if each["agentSession"]["id"] == session]
        own = [each["content"] for each in mine if each["user"] is APP]
        return [(each["type"], each.get("body") or each.get("action", "")) for each in own]

    def delegate(self, issue: dict[str, Any]) -> Sent:
        session = _node(
            issue=issue, appUser=APP, creator=ADA, status="pending", type="commentThread", slugId="s", context={}
        )
        session["activities"] = lambda **_: _connection(
            [each for each in self.activities if each["agentSession"] is session]
        )
        with self.lock:
            self.sessions[session["id"]] = session
        return self._event("created", session)

    def prompt(self, session: str, body: str, *, signal: str | None = None, user: Any = None) -> Sent:
        activity = _node(
            agentSession=self.sessions[session], content={"type": "prompt", "body": body}, signal=signal,
            user=user or ADA,
        )  # fmt: skip
        with self.lock:
            self.activities.append(activity)
        return self._event("prompted", self.sessions[session], activity)

    def sign(self, payload: dict[str, Any]) -> Sent:
        body = json.dumps(payload).encode()
        signature = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Linear-Webhook",
            "Linear-Event": payload["type"],
            "Linear-Delivery": str(uuid4()),
            "Linear-Signature": signature,
        }
        return Sent("linear", headers, body)

    def _event(self, action: str, session: dict[str, Any], activity: dict[str, Any] | None = None) -> Sent:
        issue = session["issue"]
        told = {
            "id": session["id"], "appUserId": APP["id"], "createdAt": now(), "updatedAt": now(), "type": "commentThread",
            "organizationId": "org", "status": session["status"], "creator": _child(ADA), "creatorId": ADA["id"],
            "issueId": issue["id"],
            "issue": {
                **{name: issue[name] for name in ("id", "identifier", "title", "description", "url")},
                "teamId": self.team["id"],
                "team": {name: self.team[name] for name in ("id", "key", "name")},
            },
        }  # fmt: skip
        payload: dict[str, Any] = {
            "type": "AgentSessionEvent", "action": action, "createdAt": now(), "organizationId": "org",
            "oauthClientId": "client", "appUserId": APP["id"], "agentSession": told, "webhookId": str(uuid4()),
            "webhookTimestamp": int(time.time() * 1000),
        }  # fmt: skip
        if activity is not None:
            payload["agentActivity"] = {
                "id": activity["id"], "agentSessionId": session["id"], "content": activity["content"],
                "createdAt": now(), "updatedAt": now(), "signal": activity["signal"],
                "userId": activity["user"]["id"], "user": _child(activity["user"]),
            }  # fmt: skip
        else:
            payload["promptContext"] = f'<issue identifier="{issue["identifier"]}"></issue>'
        assert deviations("AgentSessionEventWebhookPayload", payload) == []
        return self.sign(payload)

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        root = {
            "viewer": self.viewer,
            "issue": self._issue,
            "issues": self._issues,
            "team": lambda **_: self.team,
            "agentSession": lambda id: _found("AgentSession", self.sessions.get(id)),  # noqa: A006
            "agentActivity": lambda id: _found("AgentActivity", _by_id(self.activities, id)),  # noqa: A006
            "attachmentsForURL": lambda url, **_: _connection([a for a in self.attachments if a["url"] == url]),
            "attachment": lambda id: _found("Attachment", _by_id(self.attachments, id)),  # noqa: A006
            "attachmentCreate": self._attach,
            "agentActivityCreate": self._say,
            "agentSessionUpdate": self._link,
            "issueUpdate": self._move,
            "workflowState": lambda id: _found("WorkflowState", self._states.get(id)),  # noqa: A006
            "user": lambda id: ADA if id == ADA["id"] else APP,  # noqa: A006
        }
        result = graphql_sync(
            schema(), asked["query"], root, variable_values=asked.get("variables"), field_resolver=resolve
        )
        answer: dict[str, Any] = dict(result.formatted)
        for error in answer.get("errors", ()):
            self.refused.append(error["message"])
            error.setdefault("extensions", {}).setdefault("code", "GRAPHQL_VALIDATION_FAILED")
        return answer

    def _issue(self, id: str) -> dict[str, Any]:  # noqa: A002 -- Linear's name
        issue = next((each for each in self.issues if id in {each["id"], each["identifier"]}), None)
        return _found("Issue", issue)

    def _issues(self, **given: Any) -> dict[str, Any]:
        wanted = given["filter"]
        assert set(wanted) == {"team", "labels", "state"}, wanted
        label = wanted["labels"]["some"]["name"]["eq"]
        fitting = [
            each
            for each in reversed(self.issues)
            if _fits(each["team"]["key"], wanted["team"]["key"])
            and _fits(each["state"]["type"], wanted["state"]["type"])
            and label in {one["name"] for one in each["labels"]()["nodes"]}
        ]
        return self._page(fitting, **given)

    def _page(self, nodes: list[dict[str, Any]], **given: Any) -> dict[str, Any]:
        begins = int(given.get("after") or 0)
        ends = begins + min(given.get("first") or 50, self.page)
        page = {"hasNextPage": ends < len(nodes), "hasPreviousPage": begins > 0, "endCursor": str(ends)}
        return _connection(nodes[begins:ends]) | {"pageInfo": page}

    def _attach(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        issue = self._issue(input["issueId"])
        known = next((each for each in self.attached(issue) if each["url"] == input["url"]), None)
        fields = {name: value for name, value in input.items() if name in {"title", "url", "metadata", "subtitle"}}
        if known is None:
            known = _node(issue=issue, creator=APP, metadata={}, createdAt=now())
            self.attachments.append(known)
        known |= fields
        return {"success": True, "attachment": known}

    def _say(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        content, session = input["content"], _found("AgentSession", self.sessions.get(input["agentSessionId"]))
        kind = content.get("type")
        if kind not in _FIELDS or set(content) - _FIELDS[kind] or _FIELDS[kind] - set(content) - _OPTIONAL:
            raise _refusal("Argument Validation Error: content")
        if not all(isinstance(value, str) and value for value in content.values()):
            raise _refusal("Argument Validation Error: content is empty")
        if input.get("signal") == "select" and not (input.get("signalMetadata") or {}).get("options"):
            raise _refusal("Argument Validation Error: signalMetadata.options")
        activity_id = input.get("id") or str(uuid4())
        if UUID(activity_id).version != 4:
            raise _refusal("Argument Validation Error: id must be a UUID")
        if _by_id(self.activities, activity_id) is not None:
            raise _refusal("Entity already exists")
        activity = _node(
            id=activity_id, agentSession=session, content=content, user=APP, signal=input.get("signal")
        )
        activity |= {"signalMetadata": input.get("signalMetadata"), "saidAt": time.monotonic()}
        self.activities.append(activity)
        session["status"] = (_STATES | _ENDS)[kind]
        return {"success": True, "agentActivity": activity}

    def _link(self, id: str, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        session = _found("AgentSession", self.sessions.get(id))
        links = session.setdefault("externalLinks", [])
        links += [each for each in input.get("addedExternalUrls") or () if each not in links]
        return {"success": True, "agentSession": session}

    def _move(self, id: str, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        issue = self._issue(id)
        if "stateId" in input:
            issue["state"] = _found("WorkflowState", self._states.get(input["stateId"]))
        if "delegateId" in input:
            issue["delegate"] = _found("User", _by_id([ADA, APP], input["delegateId"]))
        return {"success": True, "issue": issue}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _node(**fields: Any) -> dict[str, Any]:
    return {"id": str(uuid4()), "createdAt": now(), "updatedAt": now(), **fields}


def _connection(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodes": nodes, "pageInfo": {"hasNextPage": False, "hasPreviousPage": False}}


def _child(user: dict[str, Any]) -> dict[str, Any]:
    return {name: user[name] for name in ("id", "name", "email", "url")}


def _fits(value: str, comparison: dict[str, Any] | None) -> bool:
    if comparison is None:
        return True
    assert set(comparison) <= {"eq", "nin"}, comparison
    return comparison.get("eq", value) == value and value not in comparison.get("nin", ())


def _by_id(nodes: list[dict[str, Any]], node_id: str) -> dict[str, Any] | None:
    return next((each for each in nodes if each["id"] == node_id), None)


def _refusal(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": "invalid input", "code": "INPUT_ERROR", "userError": True})


def _found(kind: str, node: dict[str, Any] | None) -> dict[str, Any]:
    if node is None:
        raise _refusal(f"Entity not found: {kind}")
    return node


@contextmanager
def serving_linear(fake: LinearFake) -> Iterator[LinearFake]:

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            asked = json.loads(body_of(self))
            if self.headers.get("Authorization") != fake.token:
                self._send(401, {}, {"errors": [_told("AUTHENTICATION_ERROR", "Authentication required")]})
                return
            with fake.lock:
                fake.asked.append(json.dumps(asked))
                fault = next((each for each in fake.faults if each.about in asked["query"]), None)
                if fault is not None:
                    fake.faults.remove(fault)
                answer = fake.answer(asked) if fault is None or fault.after else None
            if fault is None:
                self._send(400 if answer is not None and answer.get("data") is None else 200, {}, answer)
            elif fault.drops:
                self.close_connection = True
            else:
                errors = [_told(fault.code, "Rate limit exceeded")] if fault.code else []
                self._send(fault.status, fault.headers, {"errors": errors} if errors else None)

        def _send(self, status: int, headers: dict[str, str], answer: Any) -> None:
            content = b"upstream connect error" if answer is None else json.dumps(answer).encode()
            self.answer(status, {"Content-Type": "application/json; charset=utf-8", **headers}, content)

    with listening(Handler) as address:
        fake.url = f"{address}/graphql"
        yield fake


def _told(code: str, message: str) -> dict[str, Any]:
    kind = {"RATELIMITED": "ratelimited", "AUTHENTICATION_ERROR": "authentication error"}.get(code, "other")
    return {"message": message, "extensions": {"code": code, "type": kind, "userPresentableMessage": message}}
