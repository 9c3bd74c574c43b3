"""The used part of GitHub's REST API, version 2022-11-28."""

import re
import time
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from fakes.forges.github_graphql import answer_graphql
from fakes.forges.state import (
    SEPTET,
    WHEN,
    AbsentError,
    Answer,
    Asked,
    ForgeFake,
    IssueState,
    Json,
    Note,
    PullState,
    Route,
)


@dataclass
class GitHubFake(ForgeFake):
    """Issues and pull requests share their numbers; a second pull request of a branch is refused with 422."""

    name = "github"
    app_key: RSAPublicKey | None = None
    """The public key of an App that is installed on the repository."""
    app_tokens: list[str] = field(default_factory=list)

    def is_authorized(self, asked: Asked) -> bool:
        """Return whether the request has a token, or the App's proof for the App's own paths."""
        if asked.path.startswith("/app/") or asked.path.endswith("/installation"):
            return self.app_key is not None and _is_signed_by(self.app_key, asked.key)
        return super().is_authorized(asked) or asked.key in self.app_tokens

    def answer(self, asked: Asked) -> Answer:
        if asked.path.startswith("/_logs/"):  # a store of files at addresses that only the API's redirects name
            return 200, self.logs[unquote(asked.path.removeprefix("/_logs/"))].encode()
        if (asked.method, asked.path) == ("POST", "/graphql"):
            return answer_graphql(self, asked, viewer="septet[bot]" if asked.key in self.app_tokens else SEPTET)
        asked.path = re.sub(r"^/repositories/1(?=/|$)", f"/repos/{self.project}", asked.path)
        if other := re.fullmatch(r"/repositories/2/issues/(\d+)", asked.path):
            return 200, self._moved_json(int(other[1]))
        gone = re.fullmatch(rf"/repos/{self.project}/issues/(\d+)(/.*)?", asked.path)
        if gone is not None and (there := self.moved_issues.get(int(gone[1]))):
            return 301, f"{self.url}/repositories/2/issues/{there[1]}{gone[2] or ''}"
        return self.routed(asked, asked.path, self._routes())

    def redirect(self, asked: Asked) -> Answer | None:
        """Return GitHub's redirect of a request by an old name: 301 for a GET, and 307 for other methods."""
        rest = self.asked_by_old_name(asked, "/repos/")
        status = 301 if asked.method == "GET" else 307
        return None if rest is None else (status, f"{self.url}/repositories/1{rest}")

    def _moved_json(self, number: int) -> Json:
        project = next(project for project, there in self.moved_issues.values() if there == number)
        issue = self._issue_json(IssueState(number, "Moved", "", []))
        return {**issue, "html_url": f"{self.url}/{project}/issues/{number}"}

    def _routes(self) -> tuple[Route, ...]:
        here = re.escape(f"/repos/{self.project}")
        return (
            ("GET", rf"{here}/installation", lambda _asked: (200, {"id": 7, "app_id": 1})),
            ("GET", "/repos/([^/]+/[^/]+)", self._repository),
            ("POST", "/app/installations/7/access_tokens", self._token),
            ("GET", rf"{here}/issues/(\d+)", self._issue),
            ("GET", rf"{here}/issues", self._issues),
            ("GET", rf"{here}/issues/(\d+)/comments", self._notes),
            ("POST", rf"{here}/issues/(\d+)/comments", self._note),
            ("PATCH", rf"{here}/(?:issues|pulls)/comments/(\d+)", self.edit_note),
            ("GET", rf"{here}/issues/comments", self._all_notes),
            ("GET", "/user", self._account),
            ("POST", rf"{here}/issues/(\d+)/labels", self._labels),
            ("DELETE", rf"{here}/issues/(\d+)/labels/(.+)", self._unlabel),
            ("POST", rf"{here}/issues/(\d+)/assignees", self._assign),
            ("GET", rf"{here}/pulls", self._pulls),
            ("POST", rf"{here}/pulls", self._open),
            ("GET", rf"{here}/pulls/(\d+)", self._pull),
            ("PATCH", rf"{here}/pulls/(\d+)", self._pull),
            ("GET", rf"{here}/pulls/(\d+)/reviews", self._reviews),
            ("POST", rf"{here}/pulls/(\d+)/requested_reviewers", self._request),
            ("GET", rf"{here}/pulls/(\d+)/comments", self._threads),
            ("POST", rf"{here}/pulls/(\d+)/comments/(\d+)/replies", self._reply),
            ("GET", rf"{here}/actions/jobs/(\d+)/logs", self._log),
            ("GET", rf"{here}/check-runs/(\d+)", self._run),
            ("GET", rf"{here}/git/matching-refs/heads/(.*)", self._refs),
            ("GET", rf"{here}/collaborators/([^/]+)/permission", self._permission),
            ("GET", rf"{here}/commits/(\w+)/check-runs", self._runs),
            ("GET", rf"{here}/commits/(\w+)/status", lambda *_: (200, {"state": "pending", "statuses": []})),
        )

    def _repository(self, _asked: Asked, project: str) -> Answer:
        if not self.has_repository(project):
            return 404, {"message": "Not Found"}
        repository: Json = {"full_name": project, "fork": self.is_fork(project)}
        if self.is_fork(project):
            repository |= {"parent": {"full_name": self.project}, "source": {"full_name": self.project}}
        return 200, repository

    def _issue(self, _asked: Asked, number: str) -> Answer:
        if issue := self.issues.get(int(number)):
            return 200, self._issue_json(issue)
        return 200, self._pull_as_issue(self.pulls[int(number)])

    def _issues(self, asked: Asked) -> Answer:
        wanted = set(asked.one("labels").split(",")) - {""}
        pulls = map(self._pull_as_issue, self.pulls.values())
        found = [
            issue
            for issue in [*map(self._issue_json, self.issues.values()), *pulls]
            if issue["state"] == asked.one("state", "open")
            and wanted <= {each["name"] for each in issue["labels"]}
        ]
        return self.page(asked, found)

    def _pull_as_issue(self, pull: PullState) -> Json:
        """Return a pull request as GitHub lists it among issues: without its branches."""
        whole = self._pull_json(pull)
        issue = {key: whole[key] for key in whole if key not in {"base", "head", "merged_at"}}
        return {**issue, "comments": 0, "pull_request": {"url": "u"}}

    def _notes(self, asked: Asked, number: str) -> Answer:
        thing = self.pulls.get(int(number)) or self.issues[int(number)]
        return self.page(asked, [self.note_json(note) for note in thing.notes])

    def _all_notes(self, asked: Asked) -> Answer:
        notes = [
            {
                **self.note_json(note),
                "html_url": f"{self.url}/{self.project}/{'pull' if is_pull else 'issues'}/{number}#issuecomment-1",
                "issue_url": f"{self.url}/repos/{self.project}/issues/{number}",
            }
            for number, is_pull, note in self.notes_since(asked.one("since"))
        ]
        return self.page(asked, notes)

    def _note(self, asked: Asked, number: str) -> Answer:
        refused = _too_long("IssueComment", body=(asked.body["body"], 65536))
        return refused or self.take_comment(asked, number)

    def _account(self, asked: Asked) -> Answer:
        if asked.key in self.app_tokens:
            return 403, {"message": "Resource not accessible by integration"}
        return 200, {"login": SEPTET}

    def _token(self, asked: Asked) -> Answer:
        assert asked.body in ({"repositories": [self.project.partition("/")[2]]}, {"repository_ids": [1]})
        self.app_tokens.append(f"ghs_installation_{len(self.app_tokens)}")
        return 201, {"token": self.app_tokens[-1], "expires_at": "2026-01-01T01:00:00Z"}

    def _labels(self, asked: Asked, number: str) -> Answer:
        wanted = asked.body if isinstance(asked.body, list) else asked.body["labels"]
        thing = self.pulls.get(int(number)) or self.issues[int(number)]
        thing.labels = list(dict.fromkeys([*thing.labels, *wanted]))
        return 200, [{"name": name} for name in thing.labels]

    def _unlabel(self, _asked: Asked, number: str, name: str) -> Answer:
        issue = self.issues[int(number)]
        if unquote(name) not in issue.labels:
            return 404, {"message": "Label does not exist"}
        issue.labels.remove(unquote(name))
        return 200, [{"name": each} for each in issue.labels]

    def _assign(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        pull.assignees += asked.body["assignees"]
        return 201, self._issue_json(IssueState(pull.number, pull.title, pull.body, pull.labels))

    def _request(self, asked: Asked, number: str) -> Answer:
        if any(name not in self.standings for name in asked.body["reviewers"]):
            return 422, {"message": "Reviews may only be requested from collaborators."}
        self.pulls[int(number)].reviewers += asked.body["reviewers"]
        return 201, self._pull_json(self.pulls[int(number)])

    def _pulls(self, asked: Asked) -> Answer:
        head, pulls = asked.one("head"), self.pulls_in(asked)
        if ":" in head:  # GitHub ignores a head without an owner
            pulls = [pull for pull in pulls if f"{pull.head_project.partition('/')[0]}:{pull.head}" == head]
        return self.page(asked, [self._pull_json(pull) for pull in pulls])

    def _open(self, asked: Asked) -> Answer:
        body = asked.body
        if refused := _too_long("PullRequest", title=(body["title"], 256), body=(body["body"], 65536)):
            return refused
        owner, _, head = body["head"].rpartition(":")
        name = body.get("head_repo") or self.project.partition("/")[2]
        project = f"{owner}/{name}" if owner else self.project
        pull = self.open_pull(
            project, head, body["base"], body["title"], body["body"], draft=body.get("draft", False)
        )
        if isinstance(pull, PullState):
            return 201, self._pull_json(pull)
        return 422, {
            "message": "Validation Failed",
            "errors": [_error(pull, f"{project.partition('/')[0]}:{head}")],
        }

    def _pull(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        pull.body = (asked.body or {}).get("body", pull.body)
        return 200, {**self._pull_json(pull), "mergeable": not self.conflicts(pull)}

    def _reviews(self, _asked: Asked, number: str) -> Answer:
        words = {"approved": "APPROVED", "changes_requested": "CHANGES_REQUESTED"}
        return 200, [
            {
                "id": count,
                "user": self._user(author),
                "state": words.get(state, "COMMENTED"),
                "body": body,
                "commit_id": self.sha(self.pulls[int(number)]),
                "author_association": self.standings.get(author, "none").upper(),
            }
            for count, (author, state, body) in enumerate(self.pulls[int(number)].reviews, start=1)
        ]

    def _threads(self, asked: Asked, number: str) -> Answer:
        comments = [
            {
                **self.note_json(note),
                "path": thread.path,
                "line": thread.line,
                **({"in_reply_to_id": thread.id} if note.id != thread.id else {}),
            }
            for thread in self.pulls[int(number)].threads
            for note in thread.notes
        ]
        return self.page(asked, comments)

    def _reply(self, asked: Asked, number: str, comment: str) -> Answer:
        for thread in self.pulls[int(number)].threads:
            if thread.id == int(comment):
                note = self.add_reply(thread, SEPTET, asked.body["body"])
                return 201, {**self.note_json(note), "path": thread.path, "in_reply_to_id": thread.id}
        raise AbsentError(comment)

    def _log(self, _asked: Asked, number: str) -> Answer:
        name = self.check_names()[int(number) - 1]
        if name not in self.logs:
            return 404, {"message": "Not Found"}
        return 302, f"{self.url}/_logs/{quote(name)}"

    def _run(self, _asked: Asked, number: str) -> Answer:
        name = self.check_names()[int(number) - 1]
        return 200, {"id": int(number), "name": name, "output": {"title": name, "summary": "It failed."}}

    def _refs(self, _asked: Asked, prefix: str) -> Answer:
        return 200, [
            {"ref": f"refs/heads/{name}", "object": {"type": "commit", "sha": sha}}
            for name, sha in self.heads_of(self.project).items()
            if name.startswith(prefix)
        ]

    def _permission(self, _asked: Asked, name: str) -> Answer:
        if self.is_own_right_lacking:
            return 403, {"message": "Must have push access to view collaborator permission."}
        if name not in {*self.standings, SEPTET}:
            return 404, {"message": "Not Found"}
        return 200, {"permission": "write" if self.may_write(name) else "read", "role_name": "", "user": None}

    def _runs(self, _asked: Asked, sha: str) -> Answer:
        runs = [
            {
                "id": self.check_names().index(name) + 1,
                "name": name,
                "status": "in_progress" if state == "pending" else "completed",
                "conclusion": None if state == "pending" else state,
                "html_url": f"{self.url}/runs/1",
            }
            for name, state in self.statuses.get(sha, [])
        ]
        return 200, {"total_count": len(runs), "check_runs": runs}

    @staticmethod
    def _user(login: str | None) -> Json:
        return {"login": login, "id": 1} if login else None

    def note_json(self, note: Note) -> Json:
        return {
            "id": note.id,
            "body": note.body,
            "user": self._user(note.author),
            "created_at": note.created_at,
            "author_association": self.standings.get(note.author or "", "none").upper(),
        }

    def _issue_json(self, issue: IssueState) -> Json:
        return {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "html_url": f"{self.url}/{self.project}/issues/{issue.number}",
            "labels": [{"id": 1, "name": label, "color": "ededed"} for label in issue.labels],
            "user": self._user(issue.author),
            "updated_at": issue.updated_at,
            "comments": len(issue.notes),
        }

    def _pull_json(self, pull: PullState) -> Json:
        return {
            "user": self._user(pull.author),
            "number": pull.number,
            "html_url": f"{self.url}/{self.project}/pull/{pull.number}",
            "title": pull.title,
            "body": pull.body,
            "updated_at": pull.updated_at,
            "draft": pull.draft,
            "state": "open" if pull.state == "open" else "closed",
            "merged_at": WHEN if pull.state == "merged" else None,
            "labels": [{"name": label} for label in pull.labels],
            "head": {"ref": pull.head, "sha": self.sha(pull), "repo": {"full_name": pull.head_project}},
            "base": {"ref": pull.base, "sha": self.heads_of(self.project).get(pull.base, "")},
        }


def _is_signed_by(key: RSAPublicKey, token: str) -> bool:
    """Return whether a token is signed by the key, and names the App and times that GitHub accepts now."""
    try:
        claims = jwt.decode(token, key, algorithms=["RS256"], issuer="1", options={"require": ["iat", "exp"]})
    except jwt.PyJWTError:
        return False
    return bool(claims["exp"] <= time.time() + 600)


def _too_long(resource: str, **fields: tuple[str, int]) -> Answer | None:
    for name, (text, limit) in fields.items():
        if len(text) > limit:
            told = f"{name} is too long (maximum is {limit} characters)"
            error = {"resource": resource, "field": name, "code": "custom", "message": told}
            return 422, {"message": "Validation Failed", "errors": [error]}
    return None


def _error(why: str, label: str) -> Json:
    if why in {"no head", "no base"}:
        return {"resource": "PullRequest", "field": why.removeprefix("no "), "code": "invalid"}
    exists, nothing = f"A pull request already exists for {label}.", "No commits between main and it"
    text = nothing if why == "no commits" else exists
    return {"resource": "PullRequest", "code": "custom", "message": text}
