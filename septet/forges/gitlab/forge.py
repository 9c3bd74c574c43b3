"""The forge GitLab, as far as it differs from `RestForge`."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from septet.errors import NotFoundError
from septet.forges.answers import CommentAnswer, IssueAnswer, PullRequestForm, RepositoryAnswer, UserAnswer
from septet.forges.gitlab.answers import (
    GitLabApprovalsAnswer,
    GitLabBranchAnswer,
    GitLabCommentedAnswer,
    GitLabIssueAnswer,
    GitLabLabelEventAnswer,
    GitLabMemberAnswer,
    GitLabMergeRequestAnswer,
    GitLabNoteAnswer,
    GitLabProjectAnswer,
    GitLabReviewerAnswer,
    GitLabStatusAnswer,
    GitLabUserAnswer,
)
from septet.forges.gitlab.conversation import GitLabConversation
from septet.forges.http.api import HttpApi
from septet.forges.issue_history import IssueHistory
from septet.forges.issue_text import ISSUE_LIMIT_BYTES, bounded_issue
from septet.forges.limits import MOST_BRANCHES, SHORT_TITLE_LIMIT
from septet.forges.opening import Addition
from septet.forges.renames import asked_for, moved_error
from septet.forges.rest import RestForge
from septet.forges.values import (
    Branch,
    CommitCheck,
    Issue,
    NewComment,
    NewPullRequest,
    PullRequest,
    Review,
    label_names,
)

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient

_MOST_NOTES: Final = 5000
"""The most notes of an issue that are read."""
_MOVED_TO: Final = re.compile(r"moved to ([\w./-]+)#(\d+)")
_NEWEST_FIRST: Final = {"sort": "desc", "order_by": "created_at"}
_OLDEST_FIRST: Final = {"sort": "asc", "order_by": "created_at"}
_RIGHTS: Final = "Give the token the scope `api` and its account the role Developer in this project."
_REMEDIES: Final = {
    401: "Set SEPTET_GITLAB_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: f"Check the name and number; a private project that the token may not read looks the same. {_RIGHTS}",
}


def gitlab_api(url: str, token: str | None = None) -> HttpApi:
    """Return the API of a GitLab server."""
    return HttpApi("GitLab", url.rstrip("/"), token, _REMEDIES)


@dataclass(frozen=True, slots=True)
class GitLabForge(RestForge):
    """One project on GitLab."""

    name: ClassVar[str] = "gitlab"
    pull_word: ClassVar[str] = "merge request"
    pulls: ClassVar[str] = "merge_requests"
    body_field: ClassVar[str] = "description"
    update_method: ClassVar[str] = "PUT"
    open_state: ClassVar[str] = "opened"
    open_query: ClassVar[dict[str, str | int]] = {"state": "opened", **_OLDEST_FIRST}
    recent_query: ClassVar[dict[str, str | int]] = {"state": "all", "order_by": "updated_at", "sort": "desc"}
    issue_form: ClassVar[type[IssueAnswer]] = GitLabIssueAnswer
    comment_form: ClassVar[type[CommentAnswer]] = GitLabNoteAnswer
    pull_form: ClassVar[type[PullRequestForm]] = GitLabMergeRequestAnswer
    repository_form: ClassVar[type[RepositoryAnswer]] = GitLabProjectAnswer
    user_form: ClassVar[type[UserAnswer]] = GitLabUserAnswer

    def root_of(self, project: str) -> str:
        """Return the path of a project in the API."""
        return f"/projects/{quote(self.name_now(project), safe='')}"

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return an issue's edits, and who set `label`; see `TellingForge.issue_history`.

        GitLab reports edits as notes, and labels as label events.
        """
        path = f"issues/{number}"
        with self.asking(f"the history of {self.issue_name(number)}") as client:
            notes = client.read_list(GitLabNoteAnswer, f"{path}/notes", _NEWEST_FIRST)
            events = client.read_list(GitLabLabelEventAnswer, f"{path}/resource_label_events") if label else []
        last = max((each for each in events if each.sets(label)), key=lambda each: each.created_at, default=None)
        return IssueHistory(
            set_by=last.user.login if last is not None and last.user is not None else "",
            set_at=last.created_at if last is not None else None,
            edits=tuple(edit for note in notes if (edit := note.edit()) is not None),
            tells_all_edits=len(notes) < _MOST_NOTES,
        )

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; see `Forge.branches`."""
        most = MOST_BRANCHES // self.api.page_size
        with self.asking(f"the branches of {self.project}") as client:
            answers = client.read_list(GitLabBranchAnswer, "repository/branches", {"search": f"^{prefix}"}, most)
        return tuple(each.branch() for each in answers if each.name.startswith(prefix))

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return one review for each reviewer and approver; see `Forge.reviews`."""
        path = f"merge_requests/{number}"
        with self.asking(f"the reviews of {self.pull_name(number)}") as client:
            reviewers = client.get(list[GitLabReviewerAnswer], f"{path}/reviewers")
            approvals = client.get(GitLabApprovalsAnswer, f"{path}/approvals")
        reviews = {each.user.login: review for each in reviewers if (review := each.review()) is not None}
        for approver in approvals.approved_by:
            reviews[approver.user.login] = Review(approver.user.login, "approved")
        return tuple(reviews.values())

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the results of jobs and services for a commit; see `Forge.checks`."""
        with self.asking(f"the checks of {commit[:12]} in {self.project}") as client:
            answers = client.read_list(GitLabStatusAnswer, f"repository/commits/{commit}/statuses")
        return tuple({each.name: each.check() for each in answers}.values())

    def conversation(self, number: int) -> GitLabConversation:
        """Return the conversation on a merge request; see `FollowedForge.conversation`."""
        return GitLabConversation(self, number)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return the comments since `since`; see `CommentedForge.comments_since`.

        For a whole project GitLab lists comments only as events, by whole days.
        """
        day_before = (since - timedelta(days=1)).date().isoformat()
        query = {"action": "commented", "after": day_before, "sort": "asc"}
        with self.asking(f"the comments in {self.project}") as client:
            answers = client.read_list(GitLabCommentedAnswer, "events", query)
            found = [comment for each in answers if (comment := each.new_comment()) is not None]
        return tuple(each for each in found if datetime.fromisoformat(each.created_at) >= since)

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the project: a Developer and higher roles may."""
        with suppress(NotFoundError), self.asking(f"what {account} may do in {self.project}") as client:
            account_id = _account_id(client, account)
            return _standings(client, {account_id}).get(account_id) in {"developer", "maintainer", "owner"}
        return False

    def read_issue(self, client: "ApiClient", number: int) -> GitLabIssueAnswer:
        """Return GitLab's answer for an issue; raise `InvalidInputError` if the issue was moved."""
        answer = client.get(GitLabIssueAnswer, f"issues/{number}")
        asked_for(answer.issue(), self.project, number)
        if answer.moved_to_id is None:
            return answer
        url = ""
        # Only GitLab's own note names the new page.
        for note in client.read_list(GitLabNoteAnswer, f"issues/{number}/notes", _NEWEST_FIRST, 1):
            if note.system and (told := _MOVED_TO.fullmatch(note.body.strip())) is not None:
                group = "" if "/" in told[1] else f"{self.now.rpartition('/')[0]}/"
                host = answer.html_url.partition(f"/{self.now}/")[0]
                url = f"{host}/{group}{told[1]}/-/issues/{told[2]}"
                break
        raise moved_error(self.project, number, url)

    def read_comments(self, client: "ApiClient", thing: str) -> Iterable[GitLabNoteAnswer]:
        """Return people's notes on an issue or merge request, from the oldest."""
        notes = client.read_list(GitLabNoteAnswer, self.comments_path(thing), _OLDEST_FIRST)
        return [each for each in notes if not each.system]

    def comments_path(self, thing: str) -> str:
        """Return the path of the notes on an issue or merge request."""
        return f"{thing}/notes"

    def comment_path(self, thing: str, comment_id: int) -> str:
        """Return the path by which a note is edited."""
        return f"{thing}/notes/{comment_id}"

    def with_comments(self, client: "ApiClient", number: int, answer: IssueAnswer) -> Issue:
        """Return an issue with its newest comments, oldest first; see `RestForge.with_comments`."""
        notes: list[GitLabNoteAnswer] = []
        size = 0
        if answer.comments:
            for page in client.pages(GitLabNoteAnswer, f"issues/{number}/notes", _NEWEST_FIRST):
                notes += [each for each in page if not each.system]
                size += sum(len(each.body.encode(errors="replace")) for each in page)
                if size > ISSUE_LIMIT_BYTES:
                    break
        standings = _standings(client, {note.user.id for note in notes if note.user})
        comments = []
        for note in reversed(notes):
            standing = standings.get(note.user.id, "none") if note.user else "none"
            comments.append(replace(note.comment(), standing=standing))
        return bounded_issue(answer.issue(tuple(comments)))

    def pulls_with_head(self, head: str, fork: str, state: str) -> tuple[PullRequest, ...]:
        """Return the merge requests of a branch; see `RestForge.pulls_with_head`."""
        query = {"state": state, "source_branch": head, **_NEWEST_FIRST}
        with self.asking(f"merge requests of {self.project}") as client:
            source = client.get(GitLabProjectAnswer, self.root_of(fork)).id if fork else None
            answers = client.get(list[GitLabMergeRequestAnswer], "merge_requests", client.page_query(query, 1))
        return tuple(
            each.pull_request()
            for each in answers
            if each.source_branch == head and each.source_project_id == (source or each.target_project_id)
        )

    def create_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Open a merge request and return it; the caller has checked that the branch has no open merge request."""
        body: dict[str, Any] = {
            "source_branch": new.head,
            "target_branch": new.base,
            "title": new.titled("Draft: ", SHORT_TITLE_LIMIT),
            "description": new.marked_body,
            "labels": ",".join(label_names(new.labels)),
        }
        with self.asking(f"a merge request of {self.project}") as client:
            if new.head_project:
                body["target_project_id"] = client.get(GitLabProjectAnswer, "").id
            path = f"{self.root_of(new.head_project or self.project)}/merge_requests"
            return asked_for(client.post(GitLabMergeRequestAnswer, path, body).pull_request(), self.now)

    def additions(self, new: NewPullRequest) -> Sequence[Addition]:
        """Return the reviewers and the assignees to add; `create_pull_request` sets the labels."""
        return (
            ("reviewers", new.reviewers, partial(_set_people, "reviewer_ids", new.reviewers)),
            ("assignees", new.assignees, partial(_set_people, "assignee_ids", new.assignees)),
        )

    def change_labels(self, client: "ApiClient", number: int, missing: str, surplus: Sequence[str]) -> None:
        """Add the label `missing` to an issue unless `missing` is empty, and remove the labels `surplus`."""
        facts = {"add_labels": missing, "remove_labels": ",".join(surplus)}
        client.write("PUT", f"issues/{number}", {name: value for name, value in facts.items() if value})


def _set_people(field: str, names: Sequence[str], client: "ApiClient", number: int) -> None:
    client.write("PUT", f"merge_requests/{number}", {field: [_account_id(client, name) for name in names]})


def _account_id(client: "ApiClient", name: str) -> int:
    for each in client.get(list[GitLabUserAnswer], "/users", {"username": name}):
        return each.id
    raise NotFoundError(f"There is no account {name}.")


def _standings(client: "ApiClient", accounts: set[int]) -> dict[int, str]:
    """Return the roles of accounts by id; accounts without a role are left out."""
    standings: dict[int, str] = {}
    wanted, size = sorted(accounts), client.api.page_size
    for start in range(0, len(wanted), size):
        query: dict[str, int | Sequence[int]] = {"user_ids[]": wanted[start : start + size], "per_page": size}
        answers = client.get(list[GitLabMemberAnswer], "members/all", query)
        standings |= {each.id: each.standing for each in answers}
    return standings
