"""The interfaces of forges: the methods of every forge, and further methods of the forges over HTTP."""

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
    Review,
    ReviewThread,
)


class Forge(Protocol):
    """A forge, with the issues and pull requests of one repository.

    All methods raise `ForgeUnavailableError` if the forge does not answer, `ForgeError` if the forge refuses, and
    `NotFoundError` if the worker can see no issue or pull request of a number.
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
        """Return the existing issues among `numbers`, in that order, without their comments.

        Raises:
            InvalidInputError: A number is a pull request's, or an issue's of another repository now.
        """

    def open_issues(self, label: str) -> tuple[Issue, ...]:
        """Return the open issues with a label, without their comments, in the order of their numbers.

        Raises:
            InvalidInputError: The label has more than `MOST_LABELLED` issues.
        """

    def expect_fork(self, fork: str) -> None:
        """Check that `fork`, such as `me/r`, is a fork of this repository on the same forge.

        Raises:
            InvalidInputError: `fork` is no such fork, or the forge has no forks.
        """

    def find_pull_request(self, head: str, fork: str = "") -> PullRequest | None:
        """Return the open pull request of branch `head`, by any account; `None` if there is none.

        `fork` is the fork that has the branch, such as `me/r`; it is empty if this repository has the branch.
        """

    def pull_requests_of(self, head: str, fork: str = "") -> tuple[PullRequest, ...]:
        """Return the pull requests of branch `head` in every state, by any account, the newest first."""

    def branches(self, prefix: str) -> tuple[Branch, ...]:
        """Return the branches whose names begin with `prefix`, at most `MOST_BRANCHES`."""

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request, from the oldest to the newest."""

    def checks(self, commit: str) -> tuple[CommitCheck, ...]:
        """Return the results of checks, statuses or pipelines for a commit: the newest result of each name."""

    def put_comment(self, number: int, marker: str, body: str) -> None:
        """Edit the worker's comment on an issue in which the hidden mark names `marker`, or else create one."""

    def has_comment(self, number: int, marker: str) -> bool:
        """Return whether an issue has a comment of the worker in which the hidden mark names `marker`."""

    def may_write(self, account: str) -> bool:
        """Return whether an account may push to the repository, as the forge reports."""

    def is_own(self, account: str) -> bool:
        """Return whether an account is the worker's own."""

    def set_label(self, number: int, label: str, instead_of: Sequence[str]) -> None:
        """Put `label` on an issue and remove the labels `instead_of`; all other labels stay."""

    def pull_request(self, number: int, commit: str = "") -> PullRequest:
        """Return a pull request in its present state: open, merged or closed.

        `commit` is the last commit that the caller knows of, because the branch may be gone.
        """

    def open_pull_request(self, new: NewPullRequest) -> PullRequest:
        """Return the one open pull request of `new.head`: the present one, or else a new one."""

    def add_to_pull_request(self, number: int, new: NewPullRequest) -> None:
        """Add, once, a further work order to the text of a pull request that also has that work order's work.

        Raises:
            ForgeError: The forge refused, or the text is full.
        """


@runtime_checkable
class Conversation(Protocol):
    """The conversation on one pull request.

    All methods raise `ForgeUnavailableError`, `NotFoundError` and `ForgeError`.
    """

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads, the oldest first; all threads if the forge reports none as resolved."""

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the pull request as a whole, from the oldest to the newest."""

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a check's log, at most `LOG_LIMIT` characters; empty for a check without a log."""

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Edit the worker's reply in a thread in which the hidden mark names `marker`, or else create one."""

    def put_comment(self, marker: str, text: str) -> None:
        """Edit the worker's comment on the pull request in which the hidden mark names `marker`, or create one."""

    def has_comment(self, marker: str) -> bool:
        """Return whether the pull request has a comment of the worker in which the hidden mark names `marker`."""


@runtime_checkable
class FollowedForge(Forge, Protocol):
    """A forge whose pull requests an agent can follow."""

    def conversation(self, number: int) -> Conversation:
        """Return the object that reads and writes the conversation on a pull request; sends no request yet."""


@runtime_checkable
class CommentedForge(Forge, Protocol):
    """A forge that lists the comments of a whole repository."""

    def comments_since(self, since: datetime) -> tuple[NewComment, ...]:
        """Return the comments on issues and pull requests since `since`, from the oldest to the newest."""
