"""GitLab: issues read, merge requests found by their branch or opened."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.forge import (
    ISSUE_LIMIT_BYTES,
    MOST_BRANCHES,
    MOST_LABELLED,
    SHORT_TITLE_LIMIT,
    Branch,
    Comment,
    CommitCheck,
    Issue,
    NewPullRequest,
    PullRequest,
    Review,
    bounded_issue,
    bounded_list,
    label_names,
    no_fork_of,
)
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
from septet.forges.gitlab.client import asking_gitlab, is_own_account, read
from septet.forges.gitlab.conversation import GitLabConversation
from septet.forges.http_client import ForgeApi
from septet.forges.issue_history import IssueHistory
from septet.forges.new_comments import NewComment
from septet.forges.opening import CommentPlace, MarkedComment, label_once, open_once, put_once
from septet.forges.polls import RecentPullRequests
from septet.forges.renames import NAMES, asked_for, moved_error

if TYPE_CHECKING:
    from gitlab import Gitlab

_PAGE: Final = 100
_MOST_PAGES: Final = 50
_MOVED_TO: Final = re.compile(r"moved to ([\w./-]+)#(\d+)")
T = TypeVar("T")
_WRITERS: Final = frozenset({"developer", "maintainer", "owner"})


@dataclass(frozen=True, slots=True)
class GitLabForge:
    """One project on GitLab."""

    project: str
    """Such as `group/subgroup/name`."""
    api: ForgeApi
    name: str = "gitlab"

    def issue(self, number: int) -> Issue:
        """Return an issue with its labels and comments; as `Forge.issue`."""
        with asking_gitlab(self.api, self._issue_name(number)) as gitlab:
            answer = self._issue_answer(gitlab, number)
            comments = self._comments(gitlab, number) if answer.user_notes_count else ()
            return bounded_issue(answer.issue(comments))

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return those of some issues that there are; as `Forge.find_issues`. One question for each."""
        issues: list[Issue] = []
        for number in numbers:
            with suppress(NotFoundError), asking_gitlab(self.api, self._issue_name(number)) as gitlab:
                issues.append(bounded_issue(self._issue_answer(gitlab, number).issue()))
        return tuple(issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; as `Forge.open_issues`."""
        issues: list[Issue] = []
        with asking_gitlab(self.api, f"the issues of {self.project} with the label {label}") as gitlab:
            for page in range(1, _MOST_PAGES + 1):
                answer = self._project(gitlab).issues.list(
                    state="opened",
                    labels=[label],
                    order_by="created_at",
                    sort="asc",
                    per_page=_PAGE,
                    page=page,
                    get_all=False,
                )
                answers = read(list[GitLabIssueAnswer], answer)
                issues += [each.issue() for each in answers]
                if len(answers) < _PAGE or len(issues) > MOST_LABELLED:
                    break
        return bounded_list(issues, label, self.project)

    def expect_fork(self, fork: str) -> None:
        """See that `fork` is a fork of this project; as `Forge.expect_fork`."""
        with asking_gitlab(self.api, f"the fork {fork}") as gitlab:
            answer = read(GitLabProjectAnswer, gitlab.projects.get(NAMES.now(self.api.url, fork)))
        if not answer.is_fork_of(self._now):
            source = answer.forked_from_project
            raise no_fork_of(fork, self._now, source.path_with_namespace if source else "")

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open merge request of branch `head`; as `Forge.find_pull_request`."""
        return next(iter(self._merge_requests(head, fork, "opened")), None)

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the merge requests of branch `head` in every state; as `Forge.pull_requests_of`."""
        return self._merge_requests(head, fork, "all")

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return what became of an issue's text, and who set a label; as `TellingForge.issue_history`.

        GitLab tells the one in its own notes, and the other in events of labels.
        """
        with asking_gitlab(self.api, f"the history of {self._issue_name(number)}") as gitlab:
            issue = self._project(gitlab).issues.get(number, lazy=True)
            notes, tells_all = _pages(issue.notes, GitLabNoteAnswer, sort="desc", order_by="created_at")
            events = _pages(issue.resourcelabelevents, GitLabLabelEventAnswer)[0] if label else []
        last = max((each for each in events if each.sets(label)), key=lambda each: each.created_at, default=None)
        return IssueHistory(
            set_by=last.user.username if last is not None and last.user is not None else "",
            set_at=last.created_at if last is not None else None,
            edits=tuple(edit for note in notes if (edit := note.edit()) is not None),
            tells_all_edits=tells_all,
        )

    def is_own(self, account: str) -> bool:
        """Say whether an account is the one that the worker writes by; as `Forge.is_own`."""
        return is_own_account(self.api, account)

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Have an issue carry one label instead of others; as `Forge.set_label`."""
        label_once(partial(self._labels_of, number), partial(self._change_labels, number), label, instead_of)

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a merge request as it is now; as `Forge.pull_request`: GitLab itself knows what became of it."""
        del commit
        with asking_gitlab(self.api, f"merge request {number} of {self.project}") as gitlab:
            answer = self._project(gitlab).mergerequests.get(number)
            return asked_for(read(GitLabMergeRequestAnswer, answer).pull_request(), self._now, number)

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return the merge requests that changed last; as `PolledForge.recent_pull_requests`."""
        what, url = f"merge requests of {self.project}", f"{self.api.url}/projects/{quote(self._now, safe='')}"
        query: Mapping[str, str | int] = {
            "state": "all",
            "order_by": "updated_at",
            "sort": "desc",
            "per_page": _PAGE,
            "page": page,
        }
        form = list[GitLabMergeRequestAnswer]
        answer = self.api.list_if_changed(what, f"{url}/merge_requests", query, etag, form)
        if answer is None:
            return None
        answers, new_etag = answer
        return RecentPullRequests(tuple(each.pull_request() for each in answers), len(answers) < _PAGE, new_etag)

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open merge request of `new.head`; as `Forge.open_pull_request`."""
        pull_request = open_once(partial(self.find_pull_request, fork=new.head_project), self._create, new)
        return self._with_people(pull_request, new)

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Have a merge request tell of another work order; as `Forge.add_to_pull_request`."""
        with asking_gitlab(self.api, f"the text of merge request {number} of {self.project}") as gitlab:
            requests = self._project(gitlab).mergerequests
            there = read(GitLabMergeRequestAnswer, requests.get(number)).description or ""
            if (body := new.added_to(there)) != there:
                requests.update(number, {"description": body})

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; as `Forge.branches`."""
        branches: list[Branch] = []
        with asking_gitlab(self.api, f"the branches of {self.project}") as gitlab:
            for page in range(1, MOST_BRANCHES // _PAGE + 1):
                answer = self._project(gitlab).branches.list(
                    search=f"^{prefix}", per_page=_PAGE, page=page, get_all=False
                )
                answers = read(list[GitLabBranchAnswer], answer)
                branches += [each.branch() for each in answers if each.name.startswith(prefix)]
                if len(answers) < _PAGE:
                    break
        return tuple(branches)

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return what reviewers and approvers think; as `Forge.reviews`, one for each of them."""
        with asking_gitlab(self.api, f"the reviews of merge request {number} of {self.project}") as gitlab:
            request = self._project(gitlab).mergerequests.get(number, lazy=True)
            reviewers = read(list[GitLabReviewerAnswer], request.reviewer_details.list(get_all=False))
            approvals = read(GitLabApprovalsAnswer, request.approvals.get())
        reviews = {each.user.username: review for each in reviewers if (review := each.review()) is not None}
        for approver in approvals.approved_by:
            reviews[approver.user.username] = Review(approver.user.username, "approved")
        return tuple(reviews.values())

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return what jobs and services say of a commit; as `Forge.checks`."""
        checks: dict[str, CommitCheck] = {}
        with asking_gitlab(self.api, f"the checks of {commit[:12]} in {self.project}") as gitlab:
            statuses = self._project(gitlab).commits.get(commit, lazy=True).statuses
            for page in range(1, _MOST_PAGES + 1):
                answers = read(list[GitLabStatusAnswer], statuses.list(per_page=_PAGE, page=page, get_all=False))
                checks |= {each.name: each.check() for each in answers}
                if len(answers) < _PAGE:
                    break
        return tuple(checks.values())

    def conversation(self, number: int) -> GitLabConversation:
        """Return what is said on a merge request; as `FollowedForge.conversation`."""
        return GitLabConversation(self.project, self.api, number)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Have an issue carry one comment with a mark; as `Forge.put_comment`."""
        put_once(self._comment_place(number), marker, body)

    def has_comment(self, number: int, marker: str) -> bool:
        """Say whether an issue carries a comment with a mark; as `Forge.has_comment`."""
        return self._comment_place(number).has(marker)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return what was written since then; as `CommentedForge.comments_since`.

        GitLab lists the notes of a whole project only as events, which are asked for by whole days.
        """
        found: list[NewComment] = []
        with asking_gitlab(self.api, f"the comments in {self.project}") as gitlab:
            events = self._project(gitlab).events
            day_before = (since - timedelta(days=1)).date().isoformat()
            for page in range(1, _MOST_PAGES + 1):
                answer = events.list(
                    action="commented", after=day_before, sort="asc", per_page=_PAGE, page=page, get_all=False
                )
                answers = read(list[GitLabCommentedAnswer], answer)
                found += [comment for each in answers if (comment := each.new_comment()) is not None]
                if len(answers) < _PAGE:
                    break
        return tuple(each for each in found if datetime.fromisoformat(each.created_at) >= since)

    def may_write(self, account: str) -> bool:
        """Say whether an account may push to the project; as `Forge.may_write`: a Developer may."""
        with (
            suppress(NotFoundError),
            asking_gitlab(self.api, f"what {account} may do in {self.project}") as gitlab,
        ):
            account_id = self._account(gitlab, account)
            return self._standings(gitlab, {account_id}).get(account_id, "none") in _WRITERS
        return False

    def _comment_place(self, number: int) -> CommentPlace:
        return CommentPlace(
            partial(self._marked_comments, number),
            partial(self._create_comment, number),
            partial(self._edit_comment, number),
            partial(is_own_account, self.api),
        )

    def _marked_comments(self, number: int) -> list[MarkedComment]:
        found: list[MarkedComment] = []
        with asking_gitlab(self.api, f"the comments on {self._issue_name(number)}") as gitlab:
            notes = self._project(gitlab).issues.get(number, lazy=True).notes
            for page in range(1, _MOST_PAGES + 1):
                answer = notes.list(sort="asc", order_by="created_at", per_page=_PAGE, page=page, get_all=False)
                answers = read(list[GitLabNoteAnswer], answer)
                found += [each.marked_comment() for each in answers if not each.system]
                if len(answers) < _PAGE:
                    break
        return found

    def _labels_of(self, number: int) -> tuple[str, ...]:
        with asking_gitlab(self.api, self._issue_name(number)) as gitlab:
            return self._issue_answer(gitlab, number).labels

    def _change_labels(self, number: int, missing: str, surplus: Sequence[str]) -> None:
        facts = {"add_labels": missing, "remove_labels": ",".join(surplus)}
        with asking_gitlab(self.api, f"the labels of {self._issue_name(number)}") as gitlab:
            self._project(gitlab).issues.update(number, {name: value for name, value in facts.items() if value})

    def _create_comment(self, number: int, text: str) -> None:
        with asking_gitlab(self.api, f"a comment on {self._issue_name(number)}") as gitlab:
            self._project(gitlab).issues.get(number, lazy=True).notes.create({"body": text})

    def _edit_comment(self, number: int, note_id: int, text: str) -> None:
        with asking_gitlab(self.api, f"comment {note_id} on {self._issue_name(number)}") as gitlab:
            self._project(gitlab).issues.get(number, lazy=True).notes.update(note_id, {"body": text})

    def _project(self, gitlab: "Gitlab") -> Any:  # noqa: ANN401 -- its managers are typed to give lists of any
        return gitlab.projects.get(self._now, lazy=True)

    @property
    def _now(self) -> str:
        """The name that the project has now."""
        return NAMES.now(self.api.url, self.project)

    def _issue_answer(self, gitlab: "Gitlab", number: int) -> GitLabIssueAnswer:
        answer = read(GitLabIssueAnswer, self._project(gitlab).issues.get(number))
        asked_for(answer.issue(), self.project, number)
        if answer.moved_to_id is not None:
            raise moved_error(self.project, number, self._new_page(gitlab, answer))
        return answer

    def _new_page(self, gitlab: "Gitlab", issue: GitLabIssueAnswer) -> str:
        """Return the page of a moved issue, as GitLab's own note under it tells; empty where there is none."""
        notes = self._project(gitlab).issues.get(issue.iid, lazy=True).notes
        answer = notes.list(sort="desc", order_by="created_at", per_page=_PAGE, get_all=False)
        for note in read(list[GitLabNoteAnswer], answer):
            if note.system and (told := _MOVED_TO.fullmatch(note.body.strip())) is not None:
                group = "" if "/" in told[1] else f"{self._now.rpartition('/')[0]}/"
                host = issue.web_url.partition(f"/{self._now}/")[0]
                return f"{host}/{group}{told[1]}/-/issues/{told[2]}"
        return ""

    def _issue_name(self, number: int) -> str:
        return f"issue {number} of {self.project}"

    def _comments(self, gitlab: "Gitlab", number: int) -> tuple[Comment, ...]:
        """Return the newest comments, as many as can be of use, from the oldest to the newest."""
        notes: list[GitLabNoteAnswer] = []
        size = 0
        manager = self._project(gitlab).issues.get(number, lazy=True).notes
        for page in range(1, _MOST_PAGES + 1):
            answer = manager.list(sort="desc", order_by="created_at", per_page=_PAGE, page=page, get_all=False)
            answers = read(list[GitLabNoteAnswer], answer)
            notes += [each for each in answers if not each.system]
            size += sum(len(each.body.encode(errors="replace")) for each in answers)
            if len(answers) < _PAGE or size > ISSUE_LIMIT_BYTES:
                break
        standings = self._standings(gitlab, {note.author.id for note in notes if note.author})
        return tuple(note.comment(standings) for note in reversed(notes))

    def _standings(self, gitlab: "Gitlab", accounts: set[int]) -> dict[int, str]:
        """Return the roles of some accounts; who has none is not there."""
        standings: dict[int, str] = {}
        wanted = sorted(accounts)
        for start in range(0, len(wanted), _PAGE):
            answer = self._project(gitlab).members_all.list(
                query_parameters={"user_ids[]": wanted[start : start + _PAGE]}, per_page=_PAGE, get_all=False
            )
            standings |= {each.id: each.standing for each in read(list[GitLabMemberAnswer], answer)}
        return standings

    def _merge_requests(self, head: str, fork: str, state: str) -> tuple[PullRequest, ...]:
        with asking_gitlab(self.api, f"merge requests of {self.project}") as gitlab:
            name = NAMES.now(self.api.url, fork)
            source = read(GitLabProjectAnswer, gitlab.projects.get(name)).id if fork else None
            answer = self._project(gitlab).mergerequests.list(
                state=state, source_branch=head, order_by="created_at", sort="desc", per_page=_PAGE, get_all=False
            )
            answers = read(list[GitLabMergeRequestAnswer], answer)
        return tuple(
            each.pull_request()
            for each in answers
            if each.source_branch == head and each.source_project_id == (source or each.target_project_id)
        )

    def _create(self, new: NewPullRequest) -> PullRequest:
        with asking_gitlab(self.api, f"a merge request of {self.project}") as gitlab:
            facts: dict[str, object] = {
                "source_branch": new.head,
                "target_branch": new.base,
                "title": new.titled("Draft: ", SHORT_TITLE_LIMIT),
                "description": new.marked_body,
                "labels": ",".join(label_names(new.labels)),
            }
            project = self._project(gitlab)
            if new.head_project:
                facts["target_project_id"] = gitlab.projects.get(self._now).id
                project = gitlab.projects.get(NAMES.now(self.api.url, new.head_project), lazy=True)
            answer = project.mergerequests.create(facts)
            return asked_for(read(GitLabMergeRequestAnswer, answer).pull_request(), self._now)

    def _with_people(self, pull_request: PullRequest, new: NewPullRequest) -> PullRequest:
        """Ask reviewers and name assignees; who cannot be found is a warning, for the request is what counts."""
        if not new.reviewers and not new.assignees:
            return pull_request
        try:
            with asking_gitlab(self.api, f"the people of {pull_request.url}") as gitlab:
                facts = {
                    "reviewer_ids": [self._account(gitlab, name) for name in new.reviewers],
                    "assignee_ids": [self._account(gitlab, name) for name in new.assignees],
                }
                self._project(gitlab).mergerequests.update(
                    pull_request.number, {name: ids for name, ids in facts.items() if ids}
                )
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError) as error:
            return replace(pull_request, warnings=(f"reviewers and assignees were not set: {error}",))
        return pull_request

    @staticmethod
    def _account(gitlab: "Gitlab", name: str) -> int:
        for each in read(list[GitLabUserAnswer], gitlab.users.list(username=name, get_all=False)):
            return each.id
        raise NotFoundError(f"There is no account {name}.")


def _pages(manager: Any, form: type[T], **order: str) -> tuple[list[T], bool]:  # noqa: ANN401 -- of any thing
    """Return what a list holds, as far as the last page that is asked for, and whether that is all of it."""
    found: list[T] = []
    for page in range(1, _MOST_PAGES + 1):
        answers = read(list[form], manager.list(per_page=_PAGE, page=page, get_all=False, **order))  # type: ignore[valid-type]
        found += answers
        if len(answers) < _PAGE:
            return found, True
    return found, False
