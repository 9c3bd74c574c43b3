"""The common part of all forges with an HTTP API; paths are GitHub's unless a subclass has others."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from septet.errors import ForgeError, ForgeUnavailableError, InvalidInputError, NotFoundError
from septet.forges.answers import (
    CommentAnswer,
    IssueAnswer,
    PullRequestAnswer,
    PullRequestForm,
    RepositoryAnswer,
    ReviewAnswer,
    UserAnswer,
)
from septet.forges.http.api import HttpApi, account_of_key
from septet.forges.issue_text import MOST_LABELLED, bounded_issue, bounded_list
from septet.forges.opening import Addition, CommentPlace, MarkedComment, label_once, open_once, put_once
from septet.forges.renames import NAMES, asked_for
from septet.forges.values import Issue, NewPullRequest, PullRequest, RecentPullRequests, Review

if TYPE_CHECKING:
    from septet.forges.http.client import ApiClient


@dataclass(frozen=True, slots=True)
class RestForge(ABC):
    """One repository on a forge that is reached over HTTP."""

    project: str
    """The repository's name, such as `owner/name`."""
    api: HttpApi

    name: ClassVar[str]
    pull_word: ClassVar[str] = "pull request"
    """The forge's word for a pull request."""
    pulls: ClassVar[str] = "pulls"
    """The last part of the path of pull requests in the API."""
    body_field: ClassVar[str] = "body"
    update_method: ClassVar[str] = "PATCH"
    open_state: ClassVar[str] = "open"
    open_query: ClassVar[dict[str, str | int]]
    """The query for open issues, oldest first."""
    recent_query: ClassVar[dict[str, str | int]]
    """The query for all pull requests, last change first."""
    issue_form: ClassVar[type[IssueAnswer]] = IssueAnswer
    comment_form: ClassVar[type[CommentAnswer]] = CommentAnswer
    pull_form: ClassVar[type[PullRequestForm]] = PullRequestAnswer
    review_form: ClassVar[type[ReviewAnswer]]
    repository_form: ClassVar[type[RepositoryAnswer]] = RepositoryAnswer
    user_form: ClassVar[type[UserAnswer]] = UserAnswer

    @property
    def now(self) -> str:
        """The present name of the repository."""
        return self.name_now(self.project)

    def name_now(self, project: str) -> str:
        """Return the present name of a repository, which is not `project` after a rename."""
        return NAMES.now(self.api.url, project)

    def root_of(self, project: str) -> str:
        """Return the path of a repository in the API."""
        return f"/repos/{quote(self.name_now(project))}"

    def asking(self, what: str, *, tail_bytes: int = 0) -> AbstractContextManager["ApiClient"]:
        """Give the block a client whose root is the repository's path; see `HttpApi.asking`."""
        return self.api.asking(what, self.root_of(self.project), tail_bytes=tail_bytes)

    def write(self, what: str, method: str, path: str, body: Mapping[str, object]) -> None:
        """Send one request that changes something on the forge."""
        with self.asking(what) as client:
            client.write(method, path, body)

    def issue(self, number: int) -> Issue:
        """Return an issue with its labels and comments; see `Forge.issue`."""
        with self.asking(self.issue_name(number)) as client:
            return self.with_comments(client, number, self.read_issue(client, number))

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return the existing issues among `numbers`; see `Forge.find_issues`. Each issue costs one request."""
        issues: list[Issue] = []
        for number in numbers:
            with suppress(NotFoundError), self.asking(self.issue_name(number)) as client:
                issues.append(bounded_issue(self.read_issue(client, number).issue()))
        return tuple(issues)

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label; see `Forge.open_issues`. Pull requests are left out."""
        issues: list[Issue] = []
        with self.asking(f"the issues of {self.project} with the label {label}") as client:
            for answers in client.pages(self.issue_form, "issues", {**self.open_query, "labels": label}):
                found = (each.issue() for each in answers if each.pull_request is None)
                issues += [issue for issue in found if self.is_listed(issue, label)]
                if len(issues) > MOST_LABELLED:
                    break
        return bounded_list(issues, label, self.project)

    def expect_fork(self, fork: str) -> None:
        """Raise unless `fork` is a fork of this repository; see `Forge.expect_fork`."""
        with self.api.asking(f"the fork {fork}", self.root_of(fork)) as client:
            answer = client.get(self.repository_form, "")
        if not any(each is not None and each.is_named(self.now) for each in (answer.parent, answer.source)):
            raise InvalidInputError(
                f"push_to: {fork} is not a fork of {self.now}"
                + (f", but of {answer.parent.full_name}." if answer.parent else "."),
                remedy=f"Fork {self.now} on the forge, and name that fork.",
            )

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`; see `Forge.find_pull_request`."""
        return next(iter(self.pulls_with_head(head, fork, self.open_state)), None)

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state; see `Forge.pull_requests_of`."""
        return self.pulls_with_head(head, fork, "all")

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state; see `Forge.pull_request`. `commit` is ignored."""
        del commit
        with self.asking(self.pull_name(number)) as client:
            answer = client.get(self.pull_form, f"{self.pulls}/{number}")
            return asked_for(answer.pull_request(), self.now, number)

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return the pull requests that changed last; see `Forge.recent_pull_requests`.

        On GitHub, an answer that nothing has changed does not count towards the rate limit.
        """
        with self.asking(f"{self.pull_word}s of {self.project}") as client:
            query = client.page_query(self.recent_query, page)
            if (answer := client.get_if_changed(self.pull_form, self.pulls, query, etag)) is None:
                return None
            answers, new_etag = answer
            found = tuple(each.pull_request() for each in answers)
        return RecentPullRequests(found, len(answers) < self.api.page_size, new_etag)

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the open pull request of branch `new.head`; if there is none, open one.

        If an addition such as a label fails, the result has a warning.
        """
        opened = open_once(partial(self.find_pull_request, fork=new.head_project), self.create_pull_request, new)
        warnings: list[str] = []
        for what, names, add in self.additions(new):
            if not names:
                continue
            try:
                with self.asking(f"the {what} of {opened.url}") as client:
                    add(client, opened.number)
            except ForgeUnavailableError:
                raise
            except (ForgeError, NotFoundError) as error:
                warnings.append(f"{what} were not set ({', '.join(names)}): {error}")
        return replace(opened, warnings=tuple(warnings)) if warnings else opened

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add another work order to a pull request's text; see `Forge.add_to_pull_request`."""
        path = f"{self.pulls}/{number}"
        with self.asking(f"the text of {self.pull_name(number)}") as client:
            there = client.get(self.pull_form, path).pull_request().body
            if (body := new.added_to(there)) != there:
                client.write(self.update_method, path, {self.body_field: body})

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request; see `Forge.reviews`."""
        with self.asking(f"the reviews of {self.pull_name(number)}") as client:
            answers = client.read_list(self.review_form, f"{self.pulls}/{number}/reviews")
        return tuple(review for each in answers if (review := each.review()) is not None)

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Write one comment with a hidden mark on an issue; see `Forge.put_comment`."""
        put_once(self.comment_place(self.issue_name(number), f"issues/{number}"), marker, body)

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment with a hidden mark; see `Forge.has_comment`."""
        return self.comment_place(self.issue_name(number), f"issues/{number}").has(marker)

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Add a label to an issue and remove others; see `Forge.set_label`."""

        def labels() -> Sequence[str]:
            with self.asking(self.issue_name(number)) as client:
                return self.read_issue(client, number).issue().labels

        def change(missing: str, surplus: Sequence[str]) -> None:
            with self.asking(f"the labels of {self.issue_name(number)}") as client:
                self.change_labels(client, number, missing, surplus)

        label_once(labels, change, label, instead_of)

    def is_own(self, account: str) -> bool:
        """Return whether an account is the worker's own.

        If the forge does not report the worker's account, the result is true for every account.
        """
        own = self.own_account()
        return not own or account.lower() == own.lower()

    def own_account(self) -> str:
        """Return the account of the worker's key; empty if the forge refuses to report it."""
        return account_of_key(self.api, self.ask_own_account)

    def ask_own_account(self) -> str:
        """Request the account of the worker's key, and return it."""
        with self.api.asking("whose key this is") as client:
            return client.get(self.user_form, "/user").login

    def issue_name(self, number: int) -> str:
        """Return the name of an issue for errors."""
        return f"issue {number} of {self.project}"

    def pull_name(self, number: int) -> str:
        """Return the name of a pull request for errors."""
        return f"{self.pull_word} {number} of {self.project}"

    def read_issue(self, client: "ApiClient", number: int) -> IssueAnswer:
        """Return the forge's answer for an issue; raise for a pull request or another issue."""
        answer = client.get(self.issue_form, f"issues/{number}")
        if answer.pull_request is not None:
            message = f"issue: {number} of {self.project} is a pull request."
            raise InvalidInputError(message, remedy="Name the issue it belongs to.")
        asked_for(answer.issue(), self.project, number)
        return answer

    def read_comments(self, client: "ApiClient", thing: str) -> Iterable[CommentAnswer]:
        """Return the comments at the path `thing`, of an issue or pull request, oldest first."""
        return client.read_list(self.comment_form, self.comments_path(thing))

    def comments_path(self, thing: str) -> str:
        """Return the path of the comments on the issue or pull request at the path `thing`."""
        return f"issues/{thing.rpartition('/')[2]}/comments"

    def comment_path(self, thing: str, comment_id: int) -> str:
        """Return the path for editing a comment on an issue or a pull request."""
        del thing
        return f"issues/comments/{comment_id}"

    def comment_place(self, what: str, thing: str) -> CommentPlace:
        """Return the place of the comments at the path `thing`; errors call the issue or pull request `what`."""

        def comments() -> list[MarkedComment]:
            with self.asking(f"the comments on {what}") as client:
                return [each.marked_comment() for each in self.read_comments(client, thing)]

        def create(text: str) -> None:
            self.write(f"a comment on {what}", "POST", self.comments_path(thing), {"body": text})

        return CommentPlace(comments, create, partial(self.edit_comment, what, thing), self.is_own)

    def edit_comment(self, what: str, thing: str, comment_id: int, text: str) -> None:
        """Replace the text of a comment."""
        path = self.comment_path(thing, comment_id)
        self.write(f"comment {comment_id} on {what}", self.update_method, path, {"body": text})

    def is_listed(self, issue: Issue, label: str) -> bool:
        """Return whether a listed issue has the label: true, because the forge filters by label."""
        del issue, label
        return True

    @abstractmethod
    def with_comments(self, client: "ApiClient", number: int, answer: IssueAnswer) -> Issue:
        """Return an issue with its newest comments, cut to `ISSUE_LIMIT_BYTES` for body and comments together."""

    @abstractmethod
    def pulls_with_head(self, head: str, fork: str, state: str) -> tuple[PullRequest, ...]:
        """Return the pull requests of a branch of this repository or of a fork, the newest first."""

    @abstractmethod
    def create_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request and return it; the caller has checked that the branch has no open pull request."""

    @abstractmethod
    def additions(self, new: NewPullRequest) -> Sequence[Addition]:
        """Return what to add to a new pull request, such as reviewers."""

    @abstractmethod
    def change_labels(self, client: "ApiClient", number: int, missing: str, surplus: Sequence[str]) -> None:
        """Add the label `missing` to an issue unless `missing` is empty, and remove the labels `surplus`."""
