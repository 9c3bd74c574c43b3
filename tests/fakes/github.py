"""A small GitHub on loopback: real HTTP, with state, and refusals as GitHub words them."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = Any


@dataclass
class Fault:
    """An answer that is given instead of the true one, once."""

    status: int
    body: bytes = b'{"message": "Server Error"}'
    headers: dict[str, str] = field(default_factory=dict)
    method: str = ""
    """Only for requests of this method; for any, when empty."""
    after: bool = False
    """Do what was asked first: the answer alone is lost."""


@dataclass
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


@dataclass
class FakeGitHub:
    """One repository, `project`; `heads` are its branches."""

    project: str = "o/foo.js"
    tokens: frozenset[str] = frozenset({"good-token"})
    heads: dict[str, str] = field(default_factory=lambda: {"main": "a" * 40})
    issues: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)
    pulls: dict[int, Json] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    sha_of: Callable[[str], str] | None = None
    """Where the commit of a branch is looked up, when not in `heads`."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add_issue(self, title: str, body: str | None = "", labels: tuple[str, ...] = ()) -> int:
        """Add an issue and return its number; issues and pull requests share their numbers."""
        number = len(self.issues) + len(self.pulls) + 1
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "html_url": f"https://github.com/{self.project}/issues/{number}",
            "labels": [{"id": 1, "name": label, "color": "ededed"} for label in labels],
            "user": {"login": "ada", "id": 1},
        }
        return number

    def add_comment(self, number: int, body: str, author: str | None = "bob") -> None:
        """Add a comment to an issue; an account that is gone has no author."""
        user = {"login": author, "id": 2} if author else None
        self.comments.setdefault(number, []).append(
            {"id": len(self.comments), "body": body, "user": user, "created_at": "2026-01-01T00:00:00Z"}
        )

    def answer(self, asked: Asked, query: dict[str, list[str]]) -> tuple[int, Json]:
        """Return status and body for a request."""
        token = asked.headers.get("authorization", "").removeprefix("token ").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return 401, {"message": "Bad credentials"}
        for method, pattern, act in self._routes():
            if method == asked.method and (found := re.fullmatch(pattern, asked.path)):
                return act(asked, query, *found.groups())
        return 404, {"message": "Not Found"}

    def _routes(self) -> tuple[tuple[str, str, Callable[..., tuple[int, Json]]], ...]:
        repository = re.escape(f"/repos/{self.project}")
        return (
            ("GET", rf"{repository}/issues/(\d+)", self._issue),
            ("GET", rf"{repository}/issues", self._issues),
            ("GET", rf"{repository}/issues/(\d+)/comments", self._comments),
            ("POST", rf"{repository}/issues/(\d+)/labels", self._labels),
            ("GET", rf"{repository}/pulls", self._pulls),
            ("GET", rf"{repository}/pulls/(\d+)", self._pull),
            ("PATCH", rf"{repository}/pulls/(\d+)", self._change),
            ("POST", rf"{repository}/pulls", self._open),
        )

    def _issue(self, _asked: Asked, _query: Json, number: str) -> tuple[int, Json]:
        if pull := self.pulls.get(int(number)):
            return 200, {**pull, "comments": 0, "labels": [], "pull_request": {"url": pull["html_url"]}}
        if issue := self.issues.get(int(number)):
            return 200, {**issue, "comments": len(self.comments.get(int(number), []))}
        return 404, {"message": "Not Found"}

    def _issues(self, _asked: Asked, query: Json) -> tuple[int, Json]:
        size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        labels, state = set(query.get("labels", [""])[0].split(",")) - {""}, query.get("state", ["open"])[0]
        pulls = [{**pull, "pull_request": {"url": pull["html_url"]}} for pull in self.pulls.values()]
        found = [
            {"labels": [], **one, "comments": 0}
            for one in sorted([*self.issues.values(), *pulls], key=lambda one: int(one["number"]))
            if one["state"] == state and labels <= {_label(each) for each in one["labels"]}
        ]
        return 200, found[size * (page - 1) : size * page]

    def _comments(self, _asked: Asked, query: Json, number: str) -> tuple[int, Json]:
        size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        return 200, self.comments.get(int(number), [])[size * (page - 1) : size * page]

    def _labels(self, asked: Asked, _query: Json, number: str) -> tuple[int, Json]:
        thing = self.pulls.get(int(number)) or self.issues[int(number)]
        wanted = asked.body if isinstance(asked.body, list) else asked.body["labels"]
        thing["labels"] = list(dict.fromkeys([*thing.get("labels", []), *wanted]))
        return 200, [{"id": 1, "name": name, "color": "ededed"} for name in thing["labels"]]

    def _pulls(self, _asked: Asked, query: Json) -> tuple[int, Json]:
        found = [pull for pull in self.pulls.values() if pull["state"] == query.get("state", ["open"])[0]]
        head = query.get("head", [""])[0]
        if ":" in head:  # GitHub passes over a head that it does not understand
            found = [pull for pull in found if pull["head"]["label"] == head]
        return 200, found

    def _pull(self, _asked: Asked, _query: Json, number: str) -> tuple[int, Json]:
        pull = self.pulls.get(int(number))
        return (200, pull) if pull else (404, {"message": "Not Found"})

    def _change(self, asked: Asked, _query: Json, number: str) -> tuple[int, Json]:
        self.pulls[int(number)] |= asked.body
        return 200, self.pulls[int(number)]

    def _open(self, asked: Asked, _query: Json) -> tuple[int, Json]:
        body, owner = asked.body, self.project.split("/")[0]
        for name in ("head", "base"):
            if not self._sha(body[name]):
                return _invalid({"resource": "PullRequest", "field": name, "code": "invalid"})
        if self._sha(body["head"]) == self._sha(body["base"]):
            text = f"No commits between {body['base']} and {body['head']}"
            return _invalid({"resource": "PullRequest", "code": "custom", "message": text})
        label = f"{owner}:{body['head']}"
        if any(pull["head"]["label"] == label and pull["state"] == "open" for pull in self.pulls.values()):
            text = f"A pull request already exists for {label}."
            return _invalid({"resource": "PullRequest", "code": "custom", "message": text})
        number = len(self.issues) + len(self.pulls) + 1
        self.pulls[number] = {
            "number": number,
            "html_url": f"https://github.com/{self.project}/pull/{number}",
            "title": body["title"],
            "body": body["body"],
            "draft": body.get("draft", False),
            "state": "open",
            "merged_at": None,
            "head": {"label": label, "ref": body["head"], "sha": self._sha(body["head"])},
            "base": {"label": f"{owner}:{body['base']}", "ref": body["base"], "sha": self._sha(body["base"])},
            "user": {"login": "septet", "id": 3},
        }
        return 201, self.pulls[number]

    def _sha(self, branch: str) -> str:
        return self.heads.get(branch) or (self.sha_of(branch) if self.sha_of else "")


def _label(label: Json) -> str:
    return str(label if isinstance(label, str) else label["name"])


def _invalid(error: Json) -> tuple[int, Json]:
    return 422, {"message": "Validation Failed", "errors": [error]}


@contextmanager
def serving(github: FakeGitHub) -> Iterator[FakeGitHub]:
    """Let it answer on 127.0.0.1 for as long as the block lasts; its address is `url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, headers, json.loads(content) if content else None)
            with github.lock:
                github.asked.append(asked)
                fault = next((each for each in github.faults if each.method in {"", self.command}), None)
                if fault is not None:
                    github.faults.remove(fault)
                if fault is None or fault.after:
                    status, answer = github.answer(asked, parse_qs(parts.query))
                if fault is None:
                    self._send(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})
                else:
                    self._send(fault.status, fault.body, fault.headers)

        do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 -- http.server calls them

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
