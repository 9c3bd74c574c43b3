"""GitHub, and GitHub Enterprise: issues read, pull requests found by their branch or opened."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError
from septet.forges.forge import (
    ISSUE_LIMIT_BYTES,
    MOST_LABELLED,
    Comment,
    Issue,
    NewPullRequest,
    PullRequest,
    bounded_issue,
    bounded_list,
    label_names,
)
from septet.forges.github_answers import CommentAnswer, IssueAnswer, PullRequestAnswer
from septet.forges.github_client import GitHubRefusedError, asking, read

if TYPE_CHECKING:
    from githubkit import GitHub

_COMMENTS_PER_PAGE: Final = 100
_ISSUES_PER_PAGE: Final = 100
_MOST_PAGES: Final = 50
"""Pull requests are in these lists too, so that a page may hold few issues."""
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
        return bounded_list(issues, label)

    def find_pull_request(self, head: str) -> PullRequest | None:
        """Return the open pull request of branch `head`; as `Forge.find_pull_request`."""
        owner, _ = self._repository
        with asking(self.api_url, self.token, f"pull requests of {self.project}") as github:
            answer = github.rest.pulls.list(
                *self._repository, state="open", head=f"{owner}:{head}", per_page=100, headers=_HEADERS
            )
            answers = read(list[PullRequestAnswer], answer)
        # A head that GitHub does not understand filters nothing.
        return next((each.pull_request() for each in answers if each.head.ref == head), None)

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request as it is now; as `Forge.pull_request`: GitHub itself knows what became of it."""
        del commit
        with asking(self.api_url, self.token, f"pull request {number} of {self.project}") as github:
            answer = github.rest.pulls.get(*self._repository, number, headers=_HEADERS)
            return read(PullRequestAnswer, answer).pull_request()

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`; as `Forge.open_pull_request`.

        Two who ask at once get the same one: GitHub itself refuses a second for one branch.
        """
        pull_request = self.find_pull_request(new.head)
        if pull_request is None:
            try:
                pull_request = self._create(new)
            except GitHubRefusedError as error:
                if (
                    "already exists" not in error.message
                    or (pull_request := self.find_pull_request(new.head)) is None
                ):
                    raise
        return self._add_labels(pull_request, label_names(new.labels))

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Have a pull request tell of another work order; as `Forge.add_to_pull_request`."""
        with asking(self.api_url, self.token, f"the text of pull request {number} of {self.project}") as github:
            answer = github.rest.pulls.get(*self._repository, number, headers=_HEADERS)
            there = read(PullRequestAnswer, answer).body or ""
            if (body := new.added_to(there)) != there:
                github.rest.pulls.update(*self._repository, number, body=body, headers=_HEADERS)

    @property
    def _repository(self) -> tuple[str, str]:
        owner, _, name = self.project.partition("/")
        return owner, name

    def _issue_name(self, number: int) -> str:
        return f"issue {number} of {self.project}"

    def _issue_answer(self, github: "GitHub[Any]", number: int) -> IssueAnswer:
        answer = read(IssueAnswer, github.rest.issues.get(*self._repository, number, headers=_HEADERS))
        if answer.pull_request is not None:
            raise InvalidInputError(
                f"issue: {number} of {self.project} is a pull request.", remedy="Name the issue it belongs to."
            )
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
        with asking(self.api_url, self.token, f"a pull request of {self.project}") as github:
            answer = github.rest.pulls.create(
                *self._repository,
                title=new.bounded_title,
                head=new.head,
                base=new.base,
                body=new.marked_body,
                draft=new.draft,
                headers=_HEADERS,
            )
            return read(PullRequestAnswer, answer).pull_request()

    def _add_labels(self, pull_request: PullRequest, labels: tuple[str, ...]) -> PullRequest:
        """Put labels on it; one that cannot be put there is a warning, for the pull request is what counts."""
        if not labels:
            return pull_request
        try:
            with asking(self.api_url, self.token, f"the labels of {pull_request.url}") as github:
                github.rest.issues.add_labels(
                    *self._repository, pull_request.number, data=list(labels), headers=_HEADERS
                )
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError) as error:
            return replace(pull_request, warnings=(f"labels were not set: {error}",))
        return pull_request
