"""GitHub, and GitHub Enterprise: issues read, pull requests found by their branch or opened."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError
from septet.forges.forge import (
    ISSUE_LIMIT_BYTES,
    MOST_BRANCHES,
    MOST_LABELLED,
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
from septet.forges.github.answers import (
    CheckRunsAnswer,
    CombinedStatusAnswer,
    CommentAnswer,
    IssueAnswer,
    PullRequestAnswer,
    ReferenceAnswer,
    RepositoryAnswer,
    RepositoryCommentAnswer,
    ReviewAnswer,
)
from septet.forges.github.client import asking, read
from septet.forges.github.conversation import GitHubConversation
from septet.forges.github.issue_history import HISTORY, IssueHistoryAnswer, ask_graphql
from septet.forges.github.permission import is_own_account, may_write
from septet.forges.issue_history import IssueHistory
from septet.forges.new_comments import MOST_PAGES, NewComment
from septet.forges.opening import CommentPlace, MarkedComment, label_once, open_once, put_once
from septet.forges.polls import RecentPullRequests
from septet.forges.renames import NAMES, asked_for

if TYPE_CHECKING:
    from githubkit import GitHub

_COMMENTS_PER_PAGE: Final = 100
_ISSUES_PER_PAGE: Final = 100
_MOST_PAGES: Final = 50
"""Pull requests are in these lists too, so that a page may hold few issues."""
_NOT_MODIFIED: Final = 304
_HEADERS: Final = {"X-GitHub-Api-Version": "2022-11-28"}
"""The version that GitHub Enterprise servers speak as well; what is read here is the same in newer ones."""


@dataclass(frozen=True, slots=True)
class GitHubForge:
    """One repository on GitHub."""

    project: str
    """`owner/name`."""
    api_url: str
    token: str | None = field(default=None, repr=False)
    name: str = "github"

    def issue(self, number: int) -> Issue:
        """Return an issue with its labels and comments; as `Forge.issue`."""
        with asking(self.api_url, self.token, self._issue_name(number)) as github:
            answer = self._issue_answer(github, number)
            return bounded_issue(answer.issue(self._comments(github, answer)))

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return those of some issues that there are; as `Forge.find_issues`. One question for each."""
        issues: list[Issue] = []
        for number in numbers:
            with suppress(NotFoundError), asking(self.api_url, self.token, self._issue_name(number)) as github:
                answer = self._issue_answer(github, number)
                issues.append(bounded_issue(answer.issue(())))
        return tuple(issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; as `Forge.open_issues`. Pull requests are passed over."""
        issues: list[Issue] = []
        with asking(self.api_url, self.token, f"the issues of {self.project} with the label {label}") as github:
            for page in count(1):
                answer = github.rest.issues.list_for_repo(
                    *self._repository,
                    state="open",
                    labels=label,
                    sort="created",
                    direction="asc",
                    per_page=_ISSUES_PER_PAGE,
                    page=page,
                    headers=_HEADERS,
                )
                answers = read(list[IssueAnswer], answer)
                issues += [each.issue(()) for each in answers if each.pull_request is None]
                if len(answers) < _ISSUES_PER_PAGE or len(issues) > MOST_LABELLED or page == _MOST_PAGES:
                    break
        return bounded_list(issues, label, self.project)

    def expect_fork(self, fork: str) -> None:
        """See that `fork` is a fork of this repository; as `Forge.expect_fork`."""
        owner, _, name = NAMES.now(self.api_url, fork).partition("/")
        with asking(self.api_url, self.token, f"the fork {fork}") as github:
            answer = read(RepositoryAnswer, github.rest.repos.get(owner, name, headers=_HEADERS))
        if not answer.is_fork_of(self._now):
            raise no_fork_of(fork, self._now, answer.parent.full_name if answer.parent else "")

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`; as `Forge.find_pull_request`."""
        return next(iter(self._with_head(fork, head, "open")), None)

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state; as `Forge.pull_requests_of`."""
        return self._with_head(fork, head, "all")

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`; as `Forge.branches`."""
        with asking(self.api_url, self.token, f"the branches of {self.project}") as github:
            answer = github.rest.git.list_matching_refs(*self._repository, f"heads/{prefix}", headers=_HEADERS)
            return tuple(each.branch() for each in read(list[ReferenceAnswer], answer)[:MOST_BRANCHES])

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request; as `Forge.reviews`."""
        reviews: list[Review] = []
        with asking(self.api_url, self.token, f"the reviews of pull request {number} of {self.project}") as github:
            for page in range(1, _MOST_PAGES + 1):
                answer = github.rest.pulls.list_reviews(
                    *self._repository, number, per_page=_COMMENTS_PER_PAGE, page=page, headers=_HEADERS
                )
                answers = read(list[ReviewAnswer], answer)
                reviews += [review for each in answers if (review := each.review()) is not None]
                if len(answers) < _COMMENTS_PER_PAGE:
                    break
        return tuple(reviews)

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return what check runs and statuses say of a commit; as `Forge.checks`."""
        with asking(self.api_url, self.token, f"the checks of {commit[:12]} in {self.project}") as github:
            runs = github.rest.checks.list_for_ref(*self._repository, commit, per_page=100, headers=_HEADERS)
            statuses = github.rest.repos.get_combined_status_for_ref(
                *self._repository, commit, per_page=100, headers=_HEADERS
            )
            checks = {each.name: each.check() for each in read(CheckRunsAnswer, runs).check_runs}
            checks |= {each.name: each for each in read(CombinedStatusAnswer, statuses).checks()}
        return tuple(checks.values())

    def conversation(self, number: int) -> GitHubConversation:
        """Return what is said on a pull request; as `FollowedForge.conversation`."""
        return GitHubConversation(self.project, self.api_url, number, self.token)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Have an issue carry one comment with a mark; as `Forge.put_comment`."""
        put_once(self._comment_place(number), marker, body)

    def has_comment(self, number: int, marker: str) -> bool:
        """Say whether an issue carries a comment with a mark; as `Forge.has_comment`."""
        return self._comment_place(number).has(marker)

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return what was written since then; as `CommentedForge.comments_since`."""
        found: list[RepositoryCommentAnswer] = []
        with asking(self.api_url, self.token, f"the comments in {self.project}") as github:
            for page in range(1, MOST_PAGES + 1):
                answer = github.rest.issues.list_comments_for_repo(
                    *self._repository,
                    sort="created",
                    direction="asc",
                    since=since,
                    per_page=_COMMENTS_PER_PAGE,
                    page=page,
                    headers=_HEADERS,
                )
                answers = read(list[RepositoryCommentAnswer], answer)
                found += answers
                if len(answers) < _COMMENTS_PER_PAGE:
                    break
        return tuple(answer.new_comment() for answer in found)

    def may_write(self, account: str) -> bool:
        """Say whether an account may push to the repository; as `Forge.may_write`."""
        return may_write(self.api_url, self.token, self.project, account)

    def issue_history(self, number: int, label: str = "") -> IssueHistory:
        """Return what became of an issue's text, and who set a label; as `TellingForge.issue_history`."""
        owner, name = self._repository
        what = f"the history of {self._issue_name(number)}"
        with asking(self.api_url, self.token, what) as github:
            variables = {"owner": owner, "name": name, "number": number}
            issue = ask_graphql(github, what, HISTORY, variables)["repository"]["issue"]
            return IssueHistoryAnswer.model_validate(issue).history(label)

    def is_own(self, account: str) -> bool:
        """Say whether an account is the one that the worker writes by; as `Forge.is_own`."""
        return is_own_account(self.api_url, self.token, account)

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Have an issue carry one label instead of others; as `Forge.set_label`."""
        label_once(partial(self._labels_of, number), partial(self._change_labels, number), label, instead_of)

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request as it is now; as `Forge.pull_request`: GitHub itself knows what became of it."""
        del commit
        with asking(self.api_url, self.token, f"pull request {number} of {self.project}") as github:
            answer = github.rest.pulls.get(*self._repository, number, headers=_HEADERS)
            return asked_for(read(PullRequestAnswer, answer).pull_request(), self._now, number)

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return the pull requests that changed last; as `PolledForge.recent_pull_requests`.

        An answer that nothing has changed counts for no limit of GitHub's.
        """
        headers = {**_HEADERS, "If-None-Match": etag} if etag else _HEADERS
        with asking(self.api_url, self.token, f"pull requests of {self.project}") as github:
            answer = github.rest.pulls.list(
                *self._repository,
                state="all",
                sort="updated",
                direction="desc",
                per_page=_ISSUES_PER_PAGE,
                page=page,
                headers=headers,
            )
            if answer.status_code == _NOT_MODIFIED:
                return None
            answers = read(list[PullRequestAnswer], answer)
        pull_requests = tuple(each.pull_request() for each in answers)
        is_all = len(answers) < _ISSUES_PER_PAGE
        return RecentPullRequests(pull_requests, is_all, answer.headers.get("etag", ""))

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`; as `Forge.open_pull_request`."""
        pull_request = open_once(partial(self.find_pull_request, fork=new.head_project), self._create, new)
        return self._add_people(self._add_labels(pull_request, label_names(new.labels)), new)

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Have a pull request tell of another work order; as `Forge.add_to_pull_request`."""
        with asking(self.api_url, self.token, f"the text of pull request {number} of {self.project}") as github:
            answer = github.rest.pulls.get(*self._repository, number, headers=_HEADERS)
            there = read(PullRequestAnswer, answer).body or ""
            if (body := new.added_to(there)) != there:
                github.rest.pulls.update(*self._repository, number, body=body, headers=_HEADERS)

    def _comment_place(self, number: int) -> CommentPlace:
        return CommentPlace(
            partial(self._marked_comments, number),
            partial(self._create_comment, number),
            self._edit_comment,
            partial(is_own_account, self.api_url, self.token),
        )

    def _marked_comments(self, number: int) -> list[MarkedComment]:
        found: list[MarkedComment] = []
        with asking(self.api_url, self.token, f"the comments on {self._issue_name(number)}") as github:
            for page in range(1, _MOST_PAGES + 1):
                answer = github.rest.issues.list_comments(
                    *self._repository, number, per_page=_COMMENTS_PER_PAGE, page=page, headers=_HEADERS
                )
                answers = read(list[CommentAnswer], answer)
                found += [each.marked_comment() for each in answers]
                if len(answers) < _COMMENTS_PER_PAGE:
                    break
        return found

    def _labels_of(self, number: int) -> tuple[str, ...]:
        with asking(self.api_url, self.token, self._issue_name(number)) as github:
            return self._issue_answer(github, number).issue(()).labels

    def _change_labels(self, number: int, missing: str, surplus: Sequence[str]) -> None:
        with asking(self.api_url, self.token, f"the labels of {self._issue_name(number)}") as github:
            if missing:
                github.rest.issues.add_labels(*self._repository, number, labels=[missing], headers=_HEADERS)
            for each in surplus:
                github.rest.issues.remove_label(*self._repository, number, each, headers=_HEADERS)

    def _create_comment(self, number: int, text: str) -> None:
        with asking(self.api_url, self.token, f"a comment on {self._issue_name(number)}") as github:
            github.rest.issues.create_comment(*self._repository, number, body=text, headers=_HEADERS)

    def _edit_comment(self, comment_id: int, text: str) -> None:
        with asking(self.api_url, self.token, f"comment {comment_id} of {self.project}") as github:
            github.rest.issues.update_comment(*self._repository, comment_id, body=text, headers=_HEADERS)

    def _with_head(self, fork: str, head: str, state: Literal["open", "all"]) -> tuple[PullRequest, ...]:
        """Return the pull requests of a branch of this repository or of a fork, the newest first."""
        head_project = NAMES.now(self.api_url, fork) if fork else self._now
        owner = head_project.partition("/")[0]
        with asking(self.api_url, self.token, f"pull requests of {self.project}") as github:
            answer = github.rest.pulls.list(
                *self._repository, state=state, head=f"{owner}:{head}", per_page=100, headers=_HEADERS
            )
            answers = read(list[PullRequestAnswer], answer)
        # A head that GitHub does not understand filters nothing, and an owner may have several forks.
        return tuple(each.pull_request() for each in answers if each.head.is_of(head_project, head))

    def _add_people(self, pull_request: PullRequest, new: NewPullRequest) -> PullRequest:
        """Ask reviewers and name assignees; a name that is refused is a warning."""
        if not new.reviewers and not new.assignees:
            return pull_request
        try:
            with asking(self.api_url, self.token, f"the people of {pull_request.url}") as github:
                if new.reviewers:
                    github.rest.pulls.request_reviewers(
                        *self._repository, pull_request.number, reviewers=list(new.reviewers), headers=_HEADERS
                    )
                if new.assignees:
                    github.rest.issues.add_assignees(
                        *self._repository, pull_request.number, assignees=list(new.assignees), headers=_HEADERS
                    )
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError) as error:
            warning = f"reviewers and assignees were not set: {error}"
            return replace(pull_request, warnings=(*pull_request.warnings, warning))
        return pull_request

    @property
    def _now(self) -> str:
        """The name that the repository has now."""
        return NAMES.now(self.api_url, self.project)

    @property
    def _repository(self) -> tuple[str, str]:
        owner, _, name = self._now.partition("/")
        return owner, name

    def _issue_name(self, number: int) -> str:
        return f"issue {number} of {self.project}"

    def _issue_answer(self, github: "GitHub[Any]", number: int) -> IssueAnswer:
        answer = read(IssueAnswer, github.rest.issues.get(*self._repository, number, headers=_HEADERS))
        if answer.pull_request is not None:
            raise InvalidInputError(
                f"issue: {number} of {self.project} is a pull request.", remedy="Name the issue it belongs to."
            )
        asked_for(answer.issue(()), self.project, number)
        return answer

    def _comments(self, github: "GitHub[Any]", issue: IssueAnswer) -> tuple[Comment, ...]:
        """Return the newest comments, as many as can be of use, from the oldest to the newest."""
        comments: tuple[Comment, ...] = ()
        size = 0
        for page in range(-(-issue.comments // _COMMENTS_PER_PAGE), 0, -1):
            answer = github.rest.issues.list_comments(
                *self._repository, issue.number, per_page=_COMMENTS_PER_PAGE, page=page, headers=_HEADERS
            )
            older = tuple(each.comment() for each in read(list[CommentAnswer], answer))
            comments = (*older, *comments)
            size += sum(len(comment.body.encode(errors="replace")) for comment in older)
            if size > ISSUE_LIMIT_BYTES:
                break
        return comments

    def _create(self, new: NewPullRequest) -> PullRequest:
        owner, _, name = NAMES.now(self.api_url, new.head_project).partition("/")
        from githubkit.utils import UNSET

        # Among repositories of one owner the name tells which one has the branch.
        is_of_same_owner = owner.lower() == self._repository[0].lower()
        with asking(self.api_url, self.token, f"a pull request of {self.project}") as github:
            answer = github.rest.pulls.create(
                *self._repository,
                title=new.bounded_title,
                head=f"{owner}:{new.head}" if owner else new.head,
                base=new.base,
                body=new.marked_body,
                draft=new.draft,
                head_repo=name if is_of_same_owner else UNSET,
                headers=_HEADERS,
            )
            return asked_for(read(PullRequestAnswer, answer).pull_request(), self._now)

    def _add_labels(self, pull_request: PullRequest, labels: tuple[str, ...]) -> PullRequest:
        """Put labels on it; one that cannot be put there is a warning, for the pull request is what counts."""
        if not labels:
            return pull_request
        try:
            with asking(self.api_url, self.token, f"the labels of {pull_request.url}") as github:
                github.rest.issues.add_labels(
                    *self._repository, pull_request.number, labels=list(labels), headers=_HEADERS
                )
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError) as error:
            return replace(pull_request, warnings=(f"labels were not set ({', '.join(labels)}): {error}",))
        return pull_request
