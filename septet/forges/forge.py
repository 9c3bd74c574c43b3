"""The interfaces of forges: what every forge can do, and what only some forges can do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from septet.forges.values import (
    Branch,
    Comment,
    CommitCheck,
    Issue,
    NewComment,
    NewPullRequest,
    PullRequest,
    RecentPullRequests,
    Review,
    ReviewThread,
)


class Forge(Protocol):
    """One repository's issues and pull requests on a forge.

    All methods raise `ForgeUnavailableError` if the forge does not answer, `ForgeError` if it refuses, and
    `NotFoundError` if the worker can see no issue or pull request with the number.
    """

    @property
    def name(self) -> str:
        """The forge's name: `github`, `gitlab`, `gitea` or `local`."""

    def issue(self, number: int) -> Issue:
        """Return an issue.

        Raises:
            InvalidInputError: The issue is in another repository now, or the repository was renamed.
        """

    def find_issues(self, numbers: Sequence[int]) -> tuple[Issue, ...]:
        """Return the issues with these numbers that exist, without comments, in the given order.

        Raises:
            InvalidInputError: A number belongs to a pull request, or to an issue that is now elsewhere.
        """

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label, without comments, sorted by number.

        Raises:
            InvalidInputError: The label has more than `MOST_LABELLED` issues.
        """

    def expect_fork(self, fork: str) -> None:
        """Raise unless `fork`, such as `me/r`, is a fork of this repository on the same forge.

        Raises:
            InvalidInputError: `fork` is no such fork, or the forge has no forks.
        """

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`, by any account; `None` for none.

        `fork` names the fork with the branch, such as `me/r`; empty if this repository has the branch.
        """

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state, by any account, the newest first."""

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`, at most `MOST_BRANCHES`."""

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request, from the oldest to the newest."""

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the newest result of each check, status or pipeline job of a commit."""

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Write the worker's comment with the hidden mark `marker` on an issue: edit it, or else create it."""

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment of the worker with the hidden mark `marker`."""

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the repository."""

    def is_own(self, account: str) -> bool:
        """Return whether an account is the worker's own."""

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Add `label` to an issue and remove the labels `instead_of`; other labels stay."""

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state: open, merged or closed.

        `commit` is the last known commit of its branch, used if the branch was deleted.
        """

    def recent_pull_requests(self, etag: str = "", page: int = 1) -> RecentPullRequests | None:
        """Return a page of the pull requests, the latest change first; `None` if nothing changed since `etag`."""

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the open pull request of branch `new.head`; if there is none, open one."""

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add the work order of `new` to the text of a pull request with the order's work; a repeat adds nothing.

        Raises:
            ForgeError: The forge refused, or the text is full.
        """


@runtime_checkable
class Conversation(Protocol):
    """Reads and writes the conversation on one pull request.

    All methods raise `ForgeUnavailableError`, `NotFoundError` and `ForgeError`.
    """

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads, oldest first; all if the forge does not report which are resolved."""

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the pull request as a whole, from the oldest to the newest."""

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a check's log, at most `LOG_LIMIT` characters; empty for a check without a log."""

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Write the worker's reply with the hidden mark `marker` in a thread: edit it, or else create it."""

    def put_comment(self, marker: str, text: str) -> None:
        """Write the worker's comment with the hidden mark `marker` on the pull request: edit or create it."""

    def has_comment(self, marker: str) -> bool:
        """Return whether the pull request has a comment of the worker with the hidden mark `marker`."""


@runtime_checkable
class FollowedForge(Forge, Protocol):
    """A forge whose pull requests an agent can follow."""

    def conversation(self, number: int) -> Conversation:
        """Return the conversation on a pull request; this sends no request."""


@runtime_checkable
class CommentedForge(Forge, Protocol):
    """A forge that lists the comments of a whole repository."""

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return comments since a time on issues and pull requests, oldest first; also some edited older ones."""
