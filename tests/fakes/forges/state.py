"""The state of a forge, which the three fakes present in their own ways."""

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

Json = Any
Answer = tuple[int, Json]
Route = tuple[str, str, Callable[..., Answer]]
Thing = TypeVar("Thing")
WHEN = "2026-01-01T00:00:00Z"
SEPTET = "septet"


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    query: dict[str, list[str]]
    body: Json

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ").removeprefix("token ")

    def one(self, name: str, default: str = "") -> str:
        return self.query.get(name, [default])[0]


class AbsentError(KeyError):
    """There is no thing with the number of a request."""


class Numbered(dict[int, Thing]):
    def __missing__(self, number: int) -> Thing:
        """Let the forge answer 404."""
        raise AbsentError(number)


@dataclass
class Note:
    id: int
    author: str | None
    body: str
    created_at: str = WHEN


@dataclass
class ThreadState:
    id: int
    path: str
    line: int
    notes: list[Note] = field(default_factory=list)


@dataclass
class IssueEvent:
    kind: Literal["labeled", "unlabeled", "renamed", "edited"]
    actor: str
    at: str = WHEN
    label: str = ""


@dataclass
class IssueState:
    number: int
    title: str
    body: str
    labels: list[str]
    state: str = "open"
    notes: list[Note] = field(default_factory=list)
    author: str = "ada"
    events: list[IssueEvent] = field(default_factory=list)
    updated_at: str = WHEN


@dataclass
class PullState:
    number: int
    head_project: str
    head: str
    base: str
    title: str
    body: str
    draft: bool
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    state: Literal["open", "closed", "merged"] = "open"
    reviews: list[tuple[str, str, str]] = field(default_factory=list)
    """The author, state and text of each review."""
    notes: list[Note] = field(default_factory=list)
    threads: list[ThreadState] = field(default_factory=list)
    author: str = SEPTET
    changed: int = 0
    """The number of its last change, counted over all pull requests."""

    @property
    def updated_at(self) -> str:
        return f"2026-01-01T{self.changed // 3600:02}:{self.changed // 60 % 60:02}:{self.changed % 60:02}Z"


Lie = Literal["drop", "status", "truncated", "wrong_type", "slow", "stale"]


@dataclass
class Fault:
    """An answer in place of the true answer, given `times` times."""

    lie: Lie = "status"
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    text: str = "Server Error"
    body: Json | bytes = None
    """The whole body, if the message is not enough."""
    method: str = ""
    path: str = ""
    """A part of the path of these requests."""
    about: str = ""
    """A part of the body or query of these requests, such as a branch."""
    after: bool = False
    """Whether the request first takes effect, so that only its answer is lost."""
    times: int = 1
    every: int = 1
    """The answer goes to each n-th of these requests."""
    met: int = 0
    seconds: float = 0.0

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps({"message": self.text} if self.body is None else self.body).encode()


@dataclass
class ForgeFake:
    """One repository and its forks; the three forges are subclasses."""

    project: str = "o/foo.js"
    token: str = "good-token"  # noqa: S105 -- of a forge on loopback
    repositories: Path | None = None
    """A folder of bare repositories, `<project>.git`; `None` takes the branches from `heads`."""
    heads: dict[str, dict[str, str]] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()
    """The repositories that refuse all pushes."""
    strangers: frozenset[str] = frozenset()
    protected: frozenset[str] = frozenset()
    standings: dict[str, str] = field(default_factory=lambda: {"ada": "owner", "eve": "none"})
    issues: Numbered[IssueState] = field(default_factory=Numbered)
    pulls: Numbered[PullState] = field(default_factory=Numbered)
    statuses: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    repository_labels: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    seen_faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    url: str = ""
    stale_pulls: dict[int, PullState] | None = None
    """The pull requests that lists show while they lag behind."""
    known_heads: dict[str, dict[str, str]] | None = None
    """The branches that one answer has read, so that a page of a hundred pull requests runs git once."""
    old_names: tuple[str, ...] = ()
    """Earlier names of the repository; a request by an old name is redirected."""
    moved_issues: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Issues that moved to another repository, with their new numbers."""
    lags: list[Literal["no head", "no commits"]] = field(default_factory=list)
    """What the next openings of a pull request find in place of the branch, as on servers without the push yet."""
    is_own_right_lacking: bool = False
    """Whether the key may not read who may push: a GitHub key without push access, a Gitea key without admin rights."""
    next_note: int = 0
    changes: int = 0
    deviations: list[str] = field(default_factory=list)
    """Deviations of requests and answers from the forge's published description."""

    name = "forge"
    api_path = ""
    is_numbered_together = True
    has_etags = True
    page_size = ("per_page", 30)
    """The parameter for the length of a page, and the length without it."""
    absence = "Not Found"
    owner_standing = "owner"
    """The word of the forge's client for the standing of `ada`."""

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def settings(self) -> dict[str, str]:
        variable = f"SEPTET_{self.name.upper()}"
        return {
            f"{variable}_HOSTS": self.host,
            f"{variable}_API_URL": self.url + self.api_path,
            f"{variable}_TOKEN": self.token,
        }

    def at(self, _path: str) -> "ForgeFake":
        """Return the fake that answers requests for a path: one address may have several repositories."""
        return self

    def add_issue(self, title: str, body: str = "", labels: tuple[str, ...] = (), author: str = "ada") -> int:
        """Add an issue and return its number; its author sets its labels, as a template of issues does."""
        with self.lock:
            number = self._next_number(self.issues)
            events = [IssueEvent("labeled", author, label=label) for label in labels]
            self.issues[number] = IssueState(number, title, body, list(labels), author=author, events=events)
            return number

    def label_issue(self, number: int, label: str, actor: str = "ada", at: str = "") -> None:
        """Set a label as a person does; an existing label is removed first."""
        with self.lock:
            issue, at = self.issues[number], at or now()
            if label in issue.labels:
                issue.events.append(IssueEvent("unlabeled", actor, at, label))
                issue.labels.remove(label)
            issue.labels.append(label)
            issue.events.append(IssueEvent("labeled", actor, at, label))
            issue.updated_at = max(issue.updated_at, at)

    def edit_issue(self, number: int, actor: str, *, title: str = "", body: str = "", at: str = "") -> None:
        with self.lock:
            issue, at = self.issues[number], at or now()
            if title:
                issue.title = title
                issue.events.append(IssueEvent("renamed", actor, at))
            if body:
                issue.body = body
                issue.events.append(IssueEvent("edited", actor, at))
            issue.updated_at = max(issue.updated_at, at)

    def add_comment(self, number: int, body: str, author: str | None = "ada", created_at: str = WHEN) -> Note:
        """Add a comment to an issue or a pull request; a deleted account gives no author."""
        with self.lock:
            thing = self.issues.get(number) or self.pulls[number]
            if isinstance(thing, IssueState):
                thing.updated_at = max(thing.updated_at, created_at)
            return self._write(thing.notes, author, body, created_at)

    def notes_since(self, since: str) -> list[tuple[int, bool, Note]]:
        """Return the comments since a time, oldest first, each with its number and whether it is on a pull request."""
        things = [(each.number, False, note) for each in self.issues.values() for note in each.notes]
        things += [(each.number, True, note) for each in self.pulls.values() for note in each.notes]
        return sorted((each for each in things if each[2].created_at >= since), key=lambda each: each[2].id)

    def add_review(self, number: int, author: str, state: str, body: str = "") -> None:
        with self.lock:
            self.pulls[number].reviews.append((author, state, body))
            self.touch(self.pulls[number])

    def add_thread(self, number: int, author: str, path: str, line: int, body: str) -> ThreadState:
        with self.lock:
            notes: list[Note] = []
            thread = ThreadState(self._write(notes, author, body).id, path, line, notes)
            self.pulls[number].threads.append(thread)
            self.touch(self.pulls[number])
            return thread

    def add_reply(self, thread: ThreadState, author: str, body: str) -> Note:
        return self._write(thread.notes, author, body)

    def add_pull_note(self, number: int, author: str, body: str) -> Note:
        return self._write(self.pulls[number].notes, author, body)

    def _write(self, notes: list[Note], author: str | None, body: str, created_at: str = WHEN) -> Note:
        with self.lock:
            self.next_note += 1
            notes.append(Note(self.next_note, author, body, created_at))
            return notes[-1]

    def check_names(self) -> list[str]:
        """Return the names of all checks; a check's number is its place in the list."""
        return list(dict.fromkeys(name for checks in self.statuses.values() for name, _ in checks))

    def conflicts(self, pull: PullState) -> bool:
        if self.repositories is None or not self.sha(pull):
            return False
        base = self.heads_of(self.project).get(pull.base, "")
        merge = ["git", "merge-tree", "--write-tree", "--name-only", base, self.sha(pull)]
        folder = self.repositories / f"{self.project}.git"
        return subprocess.run(merge, cwd=folder, capture_output=True, check=False).returncode == 1

    def may_write(self, account: str) -> bool:
        return account == SEPTET or self.standings.get(account) in {"owner", "member", "maintainer", "developer"}

    def end_pull(self, number: int, state: Literal["closed", "merged"]) -> None:
        with self.lock:
            self.pulls[number].state = state
            self.touch(self.pulls[number])

    def touch(self, pull: PullState) -> None:
        self.changes += 1
        pull.changed = self.changes

    def comments(self) -> list[Note]:
        commented: list[IssueState | PullState] = [*self.issues.values(), *self.pulls.values()]
        return [note for each in commented for note in each.notes]

    def edit_note(self, asked: Asked, *numbers: str) -> Answer:
        on_lines = [note for pull in self.pulls.values() for thread in pull.threads for note in thread.notes]
        note = next((each for each in (*self.comments(), *on_lines) if each.id == int(numbers[-1])), None)
        if note is None:
            raise AbsentError(numbers[-1])
        if note.author != SEPTET:
            return 403, {"message": "403 Forbidden"}
        note.body = asked.body["body"]
        return 200, self.note_json(note)

    def note_json(self, note: Note) -> Json:
        raise NotImplementedError

    def heads_of(self, project: str) -> dict[str, str]:
        if self.repositories is None:
            return self.heads.get(project, {})
        with self.lock:
            if self.known_heads is None:
                return self._read_heads(self.repositories, project)
            if project not in self.known_heads:
                self.known_heads[project] = self._read_heads(self.repositories, project)
            return self.known_heads[project]

    @contextmanager
    def one_answer(self) -> Iterator[None]:
        with self.lock:
            self.known_heads = {}
            try:
                yield
            finally:
                self.known_heads = None

    def _read_heads(self, repositories: Path, project: str) -> dict[str, str]:
        listing = ["git", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"]
        folder = repositories / f"{project}.git"
        listed = subprocess.run(listing, cwd=folder, capture_output=True, text=True, check=True).stdout
        return dict(line.rsplit(" ", 1) for line in listed.splitlines())

    def has_repository(self, project: str) -> bool:
        if self.repositories is None:
            return project == self.project or project in self.heads
        return (self.repositories / f"{project}.git").exists()

    def is_fork(self, project: str) -> bool:
        return project != self.project and project not in self.strangers

    def sha(self, pull: PullState) -> str:
        return self.heads_of(pull.head_project).get(pull.head, "")

    def listed_pulls(self, order: str) -> list[PullState]:
        """Return the pull requests as lists show them, newest or last changed first."""
        pulls = self.pulls if self.stale_pulls is None else self.stale_pulls
        if "update" in order:
            return sorted(pulls.values(), key=lambda pull: (-pull.changed, -pull.number))
        return sorted(pulls.values(), key=lambda pull: -pull.number)

    def pulls_in(self, asked: Asked) -> list[PullState]:
        state, pulls = asked.one("state", "open"), self.listed_pulls(asked.one("sort"))
        return [pull for pull in pulls if state == "all" or (pull.state == "open") == (state == "open")]

    def take_comment(self, asked: Asked, number: str) -> Answer:
        return 201, self.note_json(self.add_comment(int(number), asked.body["body"], SEPTET))

    def open_pull(
        self, head_project: str, head: str, base: str, title: str, body: str, *, draft: bool = False
    ) -> PullState | str:
        """Open a pull request and return it, or return the reason of a refusal."""
        with self.lock:
            if self.lags:
                return self.lags.pop()
            if not self.heads_of(head_project).get(head):
                return "no head"
            if not self.heads_of(self.project).get(base):
                return "no base"
            if self.heads_of(head_project)[head] == self.heads_of(self.project)[base]:
                return "no commits"
            for pull in self.pulls.values():
                if (pull.head_project, pull.head, pull.base, pull.state) == (head_project, head, base, "open"):
                    return f"exists {pull.number}"
            number = self._next_number(self.pulls)
            self.pulls[number] = PullState(number, head_project, head, base, title, body, draft)
            self.touch(self.pulls[number])
            return self.pulls[number]

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def routed(self, asked: Asked, path: str, routes: tuple[Route, ...]) -> Answer:
        for method, pattern, act in routes:
            if method == asked.method and (match := re.fullmatch(pattern, path)):
                with suppress(AbsentError):
                    return act(asked, *match.groups())
        return 404, {"message": self.absence}

    def page(self, asked: Asked, everything: list[Json]) -> Answer:
        name, usual = self.page_size
        size, page = min(int(asked.one(name, str(usual))), 100), int(asked.one("page", "1"))
        return 200, everything[size * (page - 1) : size * page]

    def redirect(self, asked: Asked) -> Answer | None:
        """Return status and new address of a request by an old name; `None` by the present name."""
        raise NotImplementedError

    def asked_by_old_name(self, asked: Asked, before: str, *, quoted: bool = False) -> str | None:
        """Return the rest of a path after an old name of the repository, with its query; `None` without an old name."""
        for name in self.old_names:
            there = before + (quote(name, safe="") if quoted else name)
            if asked.path == there or asked.path.startswith(f"{there}/"):
                query = f"?{urlencode(asked.query, doseq=True)}" if asked.query else ""
                return asked.path.removeprefix(there) + query
        return None

    def is_authorized(self, asked: Asked) -> bool:
        """Return whether the request has the token; a forge without a token lets everyone read."""
        return self.token in {"", asked.key}

    def _next_number(self, things: dict[int, Any]) -> int:
        return 1 + (len(self.issues) + len(self.pulls) if self.is_numbered_together else len(things))


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
