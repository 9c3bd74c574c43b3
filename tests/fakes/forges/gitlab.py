"""The used part of GitLab's REST API, version 4."""

import re
import zlib
from dataclasses import dataclass
from urllib.parse import unquote

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

_LEVELS = {"owner": 50, "maintainer": 40, "developer": 30}


@dataclass
class GitLabFake(ForgeFake):
    """Issues and merge requests have separate numbers; a second merge request of a branch is refused with 409."""

    name = "gitlab"
    api_path = "/api/v4"
    is_numbered_together = False
    page_size = ("per_page", 20)
    absence = "404 Not found"

    def answer(self, asked: Asked) -> Answer:
        match = re.fullmatch(r"/api/v4/projects/([^/]+)(/.*)?", asked.path)
        if asked.path.startswith("/api/v4/user"):
            name = asked.one("username")
            known = [self._user(name)] if name in {*self.standings, SEPTET} else []
            return 200, known if asked.path.endswith("s") else self._user(SEPTET)
        project = unquote(match[1]) if match is not None and match[1] != "1" else self.project
        if match is None or not self.has_repository(project):
            return 404, {"message": self.absence}
        return self.routed(asked, match[2] or "", self._routes(project))

    def redirect(self, asked: Asked) -> Answer | None:
        """Return GitLab's redirect of a GET by an old name; other methods are refused."""
        rest = self.asked_by_old_name(asked, "/api/v4/projects/", quoted=True)
        if rest is None:
            return None
        if asked.method != "GET":
            return 405, {"message": "405 Method Not Allowed - Non GET methods are not allowed for moved projects"}
        return 301, f"{self.url}/api/v4/projects/1{rest}"

    def _routes(self, project: str) -> tuple[Route, ...]:
        return (
            ("GET", "", lambda _asked: self._repository(project)),
            ("GET", r"/issues/(\d+)", self._issue),
            ("PUT", r"/issues/(\d+)", self._relabel),
            ("GET", r"/issues", self._issues),
            ("GET", r"/issues/(\d+)/notes", self._notes),
            ("POST", r"/issues/(\d+)/notes", self.take_comment),
            ("PUT", r"/issues/(\d+)/notes/(\d+)", self.edit_note),
            ("GET", r"/issues/(\d+)/resource_label_events", self._label_events),
            ("GET", r"/events", self._events),
            ("GET", r"/members/all", self._members),
            ("GET", r"/merge_requests", self._requests),
            ("POST", r"/merge_requests", lambda asked: self._open(asked, project)),
            ("GET", r"/merge_requests/(\d+)", self._request),
            ("PUT", r"/merge_requests/(\d+)", self._change),
            ("GET", r"/merge_requests/(\d+)/reviewers", self._reviewers),
            ("GET", r"/merge_requests/(\d+)/approvals", self._approvals),
            ("GET", r"/merge_requests/(\d+)/discussions", self._discussions),
            ("POST", r"/merge_requests/(\d+)/discussions/(\w+)/notes", self._reply),
            ("GET", r"/merge_requests/(\d+)/notes", self._pull_notes),
            ("POST", r"/merge_requests/(\d+)/notes", self._pull_note),
            ("PUT", r"/merge_requests/(\d+)/notes/(\d+)", self.edit_note),
            ("GET", r"/jobs/(\d+)/trace", self._trace),
            ("GET", r"/repository/branches", self._branches),
            ("GET", r"/repository/commits/(\w+)/statuses", self._statuses),
        )

    def _repository(self, project: str) -> Answer:
        told = {"id": self._project_id(project), "path_with_namespace": project}
        source = {"forked_from_project": {"id": 1, "path_with_namespace": self.project}}
        return 200, told | (source if self.is_fork(project) else {})

    def _issue(self, _asked: Asked, number: str) -> Answer:
        return 200, self._issue_json(self.issues[int(number)])

    def _relabel(self, asked: Asked, number: str) -> Answer:
        issue = self.issues[int(number)]
        gone = asked.body.get("remove_labels", "").split(",")
        added = [each for each in asked.body.get("add_labels", "").split(",") if each]
        issue.labels = list(dict.fromkeys([*(each for each in issue.labels if each not in gone), *added]))
        return 200, self._issue_json(issue)

    def _issues(self, asked: Asked) -> Answer:
        wanted = set(asked.one("labels").split(",")) - {""}
        wanted |= set(asked.query.get("labels[]", []))
        issues = [
            self._issue_json(issue)
            for issue in self.issues.values()
            if (issue.state == "open") == (asked.one("state") == "opened") and wanted <= set(issue.labels)
        ]
        return self.page(asked, issues)

    def _label_events(self, asked: Asked, number: str) -> Answer:
        events = [
            {
                "user": self._user(each.actor),
                "created_at": each.at,
                "label": {"name": each.label},
                "action": "add" if each.kind == "labeled" else "remove",
            }
            for each in self.issues[int(number)].events
            if each.label
        ]
        return self.page(asked, events)

    def _own_notes(self, issue: IssueState) -> list[Json]:
        words = {"renamed": "changed title from **{-a-}** to **{+b+}**", "edited": "changed the description"}
        return [
            {**self.note_json(Note(5000 + count, each.actor, words[each.kind], each.at)), "system": True}
            for count, each in enumerate(issue.events)
            if each.kind in words
        ]

    def _notes(self, asked: Asked, number: str) -> Answer:
        notes = [self.note_json(note) for note in self.issues[int(number)].notes]
        notes += self._own_notes(self.issues[int(number)])
        if there := self.moved_issues.get(int(number)):
            project = there[0].removeprefix(f"{self.project.rpartition('/')[0]}/")  # short within one group
            told = self.note_json(Note(9999, SEPTET, f"moved to {project}#{there[1]}", WHEN))
            notes.append({**told, "system": True})
        return self.page(asked, notes[::-1] if asked.one("sort", "desc") == "desc" else notes)

    def _pull_note(self, asked: Asked, number: str) -> Answer:
        return 201, self.note_json(self.add_pull_note(int(number), SEPTET, asked.body["body"]))

    def _events(self, asked: Asked) -> Answer:
        assert (asked.one("action"), asked.one("sort")) == ("commented", "asc")
        events = [
            {
                "created_at": note.created_at,
                "author_username": note.author,
                "note": {
                    **self.note_json(note),
                    "noteable_type": "MergeRequest" if is_pull else "Issue",
                    "noteable_iid": number,
                },
            }
            for number, is_pull, note in self.notes_since(asked.one("after"))
            if note.created_at[:10] > asked.one("after")
        ]
        return self.page(asked, events)

    def _members(self, asked: Asked) -> Answer:
        wanted = {int(each) for each in asked.query.get("user_ids[]", [])}
        return 200, [
            {"id": self._id(name), "username": name, "access_level": _LEVELS[standing]}
            for name, standing in {**self.standings, SEPTET: "developer"}.items()
            if standing in _LEVELS and self._id(name) in wanted
        ]

    def _requests(self, asked: Asked) -> Answer:
        state, head = asked.one("state", "all"), asked.one("source_branch")
        pulls = [
            pull
            for pull in self.listed_pulls(asked.one("order_by"))
            if state in {"all", "opened" if pull.state == "open" else pull.state} and head in {"", pull.head}
        ]
        return self.page(asked, [self._pull_json(pull) for pull in pulls])

    def _open(self, asked: Asked, project: str) -> Answer:
        body = asked.body
        if project != self.project and body.get("target_project_id") != self._project_id(self.project):
            return 403, {"message": "403 Forbidden"}
        title = body["title"]
        if len(title) > 255:
            return 400, {"message": {"title": ["is too long (maximum is 255 characters)"]}}
        pull = self.open_pull(
            project,
            body["source_branch"],
            body["target_branch"],
            title.removeprefix("Draft: "),
            body["description"],
            draft=title.startswith("Draft: "),
        )
        if isinstance(pull, PullState):
            pull.labels = [label for label in body.get("labels", "").split(",") if label]
            return 201, self._pull_json(pull)
        if pull.startswith("exists"):
            number = pull.split()[1]
            return 409, {
                "message": [f"Another open merge request already exists for this source branch: !{number}"]
            }
        wrong = {"source_branch": ["does not exist"]} if pull == "no head" else {"base": ["can't be blank"]}
        return 400, {"message": wrong}

    def _request(self, _asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        return 200, {**self._pull_json(pull), "has_conflicts": self.conflicts(pull)}

    def _discussions(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        threads = [
            {
                "id": f"d{thread.id}",
                "notes": [
                    {
                        **self.note_json(note),
                        "resolvable": True,
                        "position": {"new_path": thread.path, "new_line": thread.line},
                    }
                    for note in thread.notes
                ],
            }
            for thread in pull.threads
        ]
        alone = [{"id": f"n{note.id}", "notes": [self.note_json(note)]} for note in pull.notes]
        return self.page(asked, [*threads, *alone])

    def _reply(self, asked: Asked, number: str, discussion: str) -> Answer:
        for thread in self.pulls[int(number)].threads:
            if f"d{thread.id}" == discussion:
                return 201, self.note_json(self.add_reply(thread, SEPTET, asked.body["body"]))
        raise AbsentError(discussion)

    def _pull_notes(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        notes = [self.note_json(note) for note in pull.notes]
        notes += [{**self.note_json(note), "type": "DiffNote"} for each in pull.threads for note in each.notes]
        return self.page(asked, sorted(notes, key=lambda note: int(note["id"])))

    def _trace(self, _asked: Asked, number: str) -> Answer:
        name = self.check_names()[int(number) - 1]
        return (200, self.logs[name].encode()) if name in self.logs else (404, {"message": "404 Not Found"})

    def _change(self, asked: Asked, number: str) -> Answer:
        pull = self.pulls[int(number)]
        names = {self._id(name): name for name in self.standings}
        pull.body = asked.body.get("description", pull.body)
        pull.reviewers += [names[each] for each in asked.body.get("reviewer_ids", [])]
        pull.assignees += [names[each] for each in asked.body.get("assignee_ids", [])]
        return 200, self._pull_json(pull)

    def _reviewers(self, _asked: Asked, number: str) -> Answer:
        words = {"changes_requested": "requested_changes", "approved": "approved"}
        return 200, [
            {"user": self._user(author), "state": words.get(state, "reviewed")}
            for author, state, _ in self.pulls[int(number)].reviews
        ]

    def _approvals(self, _asked: Asked, number: str) -> Answer:
        reviews = self.pulls[int(number)].reviews
        approvers = [author for author, state, _ in reviews if state == "approved"]
        return 200, {"approved_by": [{"user": self._user(each)} for each in approvers]}

    def _branches(self, asked: Asked) -> Answer:
        prefix = asked.one("search").removeprefix("^")
        branches = [
            {"name": name, "commit": {"id": sha}}
            for name, sha in self.heads_of(self.project).items()
            if name.startswith(prefix)
        ]
        return self.page(asked, branches)

    def _statuses(self, asked: Asked, sha: str) -> Answer:
        words = {"failure": "failed", "pending": "running"}
        statuses = [
            {"id": self.check_names().index(name) + 1, "name": name, "status": words.get(state, state)}
            for name, state in self.statuses.get(sha, [])
        ]
        return self.page(asked, statuses)

    def _project_id(self, project: str) -> int:
        return 1 if project == self.project else 2 + zlib.crc32(project.encode())

    def _id(self, name: str) -> int:
        known = sorted({*self.standings, SEPTET})
        return 100 + known.index(name) if name in known else 1000 + zlib.crc32(name.encode()) % 1_000_000

    def _user(self, name: str) -> Json:
        return {"id": self._id(name), "username": name}

    def note_json(self, note: Note) -> Json:
        author = self._user(note.author) if note.author else None
        return {"id": note.id, "body": note.body, "author": author, "created_at": note.created_at}

    def _issue_json(self, issue: IssueState) -> Json:
        return {
            "iid": issue.number,
            "title": issue.title,
            "description": issue.body,
            "state": "opened" if issue.state == "open" else "closed",
            "web_url": f"{self.url}/{self.project}/-/issues/{issue.number}",
            "labels": issue.labels,
            "author": self._user(issue.author),
            "user_notes_count": len(issue.notes),
            "moved_to_id": 4242 if issue.number in self.moved_issues else None,
        }

    def _pull_json(self, pull: PullState) -> Json:
        return {
            "author": self._user(pull.author),
            "iid": pull.number,
            "web_url": f"{self.url}/{self.project}/-/merge_requests/{pull.number}",
            "title": f"Draft: {pull.title}" if pull.draft else pull.title,
            "description": pull.body,
            "updated_at": pull.updated_at,
            "state": "opened" if pull.state == "open" else pull.state,
            "source_branch": pull.head,
            "target_branch": pull.base,
            "source_project_id": self._project_id(pull.head_project),
            "target_project_id": 1,
            "sha": self.sha(pull) or None,
            "labels": pull.labels,
        }
