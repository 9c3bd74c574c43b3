"""The used part of Gitea's and Forgejo's REST API, version 1."""

import re
from dataclasses import dataclass, field

from fakes.forges.state import (
    SEPTET,
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

_FIRST_OF_NOTES = 1000
"""The first number of the reviews that hold comments."""


@dataclass
class GiteaFake(ForgeFake):
    """Issues and pull requests share their numbers; a second pull request of a branch is refused with 409."""

    name = "gitea"
    api_path = "/api/v1"
    has_etags = False
    page_size = ("limit", 30)
    absence = "The target couldn't be found."
    owner_standing = "collaborator"  # `ada` has no namesake that owns the repository
    known_labels: list[str] = field(default_factory=list)
    """All labels that the repository ever had, in the order of their ids."""

    def answer(self, asked: Asked) -> Answer:
        return self.routed(asked, asked.path, self._routes())

    def redirect(self, asked: Asked) -> Answer | None:
        rest = self.asked_by_old_name(asked, "/api/v1/repos/")
        return None if rest is None else (307, f"/api/v1/repos/{self.project}{rest}")

    def _routes(self) -> tuple[Route, ...]:
        here = re.escape(f"/api/v1/repos/{self.project}")
        return (
            ("GET", "/api/v1/repos/([^/]+/[^/]+)", self._repository),
            ("GET", rf"{here}/issues/(\d+)", self._issue),
            ("GET", rf"{here}/issues", self._issues),
            ("GET", rf"{here}/issues/(\d+)/comments", self._comments),
            ("POST", rf"{here}/issues/(\d+)/comments", self.take_comment),
            ("PATCH", rf"{here}/issues/comments/(\d+)", self.edit_note),
            ("GET", rf"{here}/issues/(\d+)/timeline", self._timeline),
            ("GET", rf"{here}/issues/comments", self._all_comments),
            ("GET", "/api/v1/user", lambda _asked: (200, {"id": 1, "login": SEPTET})),
            ("GET", rf"{here}/labels", self._all_labels),
            ("POST", rf"{here}/labels", self._new_label),
            ("POST", rf"{here}/issues/(\d+)/labels", self._labels),
            ("DELETE", rf"{here}/issues/(\d+)/labels/(\d+)", self._unlabel),
            ("GET", rf"{here}/pulls", self._pulls),
            ("POST", rf"{here}/pulls", self._open),
            ("GET", rf"{here}/pulls/(\d+)", self._pull),
            ("PATCH", rf"{here}/pulls/(\d+)", self._change),
            ("POST", rf"{here}/pulls/(\d+)/requested_reviewers", self._request),
            ("GET", rf"{here}/pulls/(\d+)/reviews", self._reviews),
            ("POST", rf"{here}/pulls/(\d+)/reviews", self._review),
            ("GET", rf"{here}/pulls/(\d+)/reviews/(\d+)/comments", self._review_comments),
            ("GET", rf"{here}/branches", self._branches),
            ("GET", rf"{here}/commits/(\w+)/statuses", self._statuses),
            ("GET", rf"{here}/collaborators/([^/]+)/permission", self._permission),
            ("GET", rf"{here}/assignees", self._assignees),
            ("GET", rf"{here}/collaborators/([^/]+)", self._collaborator),
        )

    def _repository(self, _asked: Asked, project: str) -> Answer:
        if not self.has_repository(project):
            return 404, {"message": self.absence}
        parent = {"full_name": self.project} if self.is_fork(project) else None
        return 200, {"full_name": project, "fork": self.is_fork(project), "parent": parent}

    def _issue(self, _asked: Asked, number: str) -> Answer:
        if issue := self.issues.get(int(number)):
            return 200, self._issue_json(issue)
        return 200, {**self._pull_json(self.pulls[int(number)]), "pull_request": {"merged": False}}

    def _issues(self, asked: Asked) -> Answer:
        wanted = {label for label in asked.one("labels").split(",") if label in self._label_names()}
        issues = [
            self._issue_json(issue)
            for issue in self.issues.values()
            if issue.state == asked.one("state", "open") and (not wanted or wanted & set(issue.labels))
        ]
        return self.page(asked, issues)

    def _comments(self, _asked: Asked, number: str) -> Answer:
        thing = self.pulls.get(int(number)) or self.issues[int(number)]
        return 200, [self.note_json(note) for note in thing.notes]

    def _timeline(self, asked: Asked, number: str) -> Answer:
        """Return comments, labels and titles; Gitea does not report edits of a body."""
        issue = self.issues[int(number)]
        told = [{**self.note_json(note), "type": "comment"} for note in issue.notes]
        for count, each in enumerate(issue.events, start=9000):
            if each.kind == "edited":
                continue
            event = {"id": count, "user": {"id": 1, "login": each.actor}, "created_at": each.at, "body": ""}
            if each.label:
                label = {"id": self._label_names().index(each.label) + 1, "name": each.label}
                told.append({**event, "type": "label", "label": label, "body": "1" * (each.kind == "labeled")})
            else:
                told.append({**event, "type": "change_title", "old_title": "a", "new_title": issue.title})
        return self.page(asked, sorted(told, key=lambda one: str(one["created_at"])))

    def _all_comments(self, asked: Asked) -> Answer:
        notes = []
        for number, is_pull, note in self.notes_since(asked.one("since")):
            kind, page = ("pull_request_url", "pulls") if is_pull else ("issue_url", "issues")
            notes.append({**self.note_json(note), kind: f"{self.url}/{self.project}/{page}/{number}"})
        return self.page(asked, notes)

    def _label_names(self) -> list[str]:
        used = [label for issue in self.issues.values() for label in issue.labels]
        known = [*self.known_labels, *used, *self.repository_labels]
        self.known_labels = list(dict.fromkeys(known))  # a label keeps its place, which is its id
        return self.known_labels

    def _all_labels(self, asked: Asked) -> Answer:
        return self.page(asked, [{"id": n, "name": name} for n, name in enumerate(self._label_names(), 1)])

    def _new_label(self, asked: Asked) -> Answer:
        self.repository_labels.append(asked.body["name"])
        return 201, {"id": len(self._label_names()), "name": asked.body["name"]}

    def _labels(self, asked: Asked, number: str) -> Answer:
        names = self._label_names()
        thing = self.pulls.get(int(number)) or self.issues[int(number)]
        thing.labels = list(dict.fromkeys([*thing.labels, *(names[each - 1] for each in asked.body["labels"])]))
        return 200, [{"id": names.index(name) + 1, "name": name} for name in thing.labels]

    def _unlabel(self, _asked: Asked, number: str, label: str) -> Answer:
        self.issues[int(number)].labels.remove(self._label_names()[int(label) - 1])
        return 204, None

    def _pulls(self, asked: Asked) -> Answer:
        return self.page(asked, [self._pull_json(pull) for pull in self.pulls_in(asked)])

    def _open(self, asked: Asked) -> Answer:
        body = asked.body
        owner, _, head = body["head"].rpartition(":")
        project = f"{owner}/{self.project.partition('/')[2]}" if owner else self.project
        title = body["title"]
        if len(title) > 255:
            return 500, {"message": "pq: value too long for type character varying(255)"}
        draft = title.startswith("WIP: ")
        pull = self.open_pull(project, head, body["base"], title.removeprefix("WIP: "), body["body"], draft=draft)
        if isinstance(pull, PullState):
            return 201, self._pull_json(pull)
        if pull.startswith("exists"):
            return 409, {"message": f"pull request already exists for these targets [issue_id: {pull.split()[1]}]"}
        if pull == "no commits":
            return 422, {"message": "There are no changes between the head and the base"}
        return 404, {"message": self.absence}

    def _pull(self, _asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        return 200, {**self._pull_json(pull), "mergeable": not pull.draft and not self.conflicts(pull)}

    def _change(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        pull.body = asked.body.get("body", pull.body)
        pull.assignees += asked.body.get("assignees", [])
        return 201, self._pull_json(pull)

    def _request(self, asked: Asked, number: str) -> Answer:
        if any(name not in self.standings for name in asked.body["reviewers"]):
            return 404, {"message": "user does not exist"}
        self.pulls[int(number)].reviewers += asked.body["reviewers"]
        return 201, []

    def _reviews(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        words = {"changes_requested": "REQUEST_CHANGES", "approved": "APPROVED"}
        told = [
            (count, 0, author, words.get(state, "COMMENT"), body)
            for count, (author, state, body) in enumerate(pull.reviews, start=1)
        ]
        told += [
            (_FIRST_OF_NOTES + note.id, 1, str(note.author), "COMMENT", "")
            for thread in pull.threads
            for note in thread.notes
        ]
        reviews = [
            {
                "id": number,
                "comments_count": count,
                "user": {"login": author},
                "state": state,
                "body": body,
                "commit_id": self.sha(pull),
            }
            for number, count, author, state, body in told
        ]
        return self.page(asked, reviews)

    def _review(self, asked: Asked, number: str) -> Answer:
        """Take a review with one comment; on a line that has comments the comment is a reply."""
        comment = asked.body["comments"][0]
        for thread in self.pulls[int(number)].threads:
            if (thread.path, thread.line) == (comment["path"], comment["new_position"]):
                note = self.add_reply(thread, SEPTET, comment["body"])
                return 200, {"id": _FIRST_OF_NOTES + note.id, "state": "COMMENT"}
        return 422, {"message": "no such line"}

    def _review_comments(self, _asked: Asked, number: str, review: str) -> Answer:
        return 200, [
            {
                **self.note_json(note),
                "path": thread.path,
                "position": thread.line,
            }
            for thread in self.pulls[int(number)].threads
            for note in thread.notes
            if _FIRST_OF_NOTES + note.id == int(review)
        ]

    def _branches(self, asked: Asked) -> Answer:
        branches = [{"name": name, "commit": {"id": sha}} for name, sha in self.heads_of(self.project).items()]
        return self.page(asked, branches)

    def _statuses(self, asked: Asked, sha: str) -> Answer:
        statuses = [
            {"context": name, "status": state, "description": self.logs.get(name, "")}
            for name, state in self.statuses.get(sha, [])
        ]
        return self.page(asked, statuses)

    def _assignees(self, _asked: Asked) -> Answer:
        return 200, [{"id": 1, "login": name} for name in (*self.standings, SEPTET) if self.may_write(name)]

    def _permission(self, _asked: Asked, name: str) -> Answer:
        if self.is_own_right_lacking and name != SEPTET:
            return 403, {"message": "Only admins can query all permissions"}
        if name not in {*self.standings, SEPTET}:
            raise AbsentError(name)
        return 200, {"permission": "write" if self.may_write(name) else "read"}

    def _collaborator(self, _asked: Asked, name: str) -> Answer:
        return (404 if self.standings.get(name, "none") == "none" else 204), None

    def note_json(self, note: Note) -> Json:
        user = {"login": note.author} if note.author else None
        return {"id": note.id, "body": note.body, "user": user, "created_at": note.created_at}

    def _issue_json(self, issue: IssueState) -> Json:
        names = self._label_names()
        return {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "html_url": f"{self.url}/{self.project}/issues/{issue.number}",
            "labels": [{"id": names.index(name) + 1, "name": name} for name in issue.labels],
            "user": {"login": issue.author},
            "updated_at": issue.updated_at,
            "comments": len(issue.notes),
        }

    def _pull_json(self, pull: PullState) -> Json:
        return {
            "user": {"login": pull.author},
            "number": pull.number,
            "html_url": f"{self.url}/{self.project}/pulls/{pull.number}",
            "title": f"WIP: {pull.title}" if pull.draft else pull.title,
            "body": pull.body,
            "updated_at": pull.updated_at,
            "state": "open" if pull.state == "open" else "closed",
            "merged": pull.state == "merged",
            "head": {"ref": pull.head, "sha": self.sha(pull), "repo": {"full_name": pull.head_project}},
            "base": {"ref": pull.base},
        }
