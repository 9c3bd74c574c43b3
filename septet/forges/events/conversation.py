"""The interface to the conversation on a pull request: review threads, comments, replies, logs of checks."""

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from septet.forges.forge import Comment, CommitCheck, Forge

LOG_LIMIT: Final = 8000
"""The most characters of a failing check's log: its end has the most information."""
LOG_TAIL_BYTES: Final = 4 * LOG_LIMIT
MOST_THREADS: Final = 100
"""The most review threads that are read: the newest."""


@dataclass(frozen=True, slots=True)
class ThreadComment:
    """One comment of a thread."""

    id: str
    comment: Comment


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """The comments on one place of a pull request, or one discussion of the whole."""

    id: str
    """The id that a reply names."""
    path: str
    line: int | None
    """The line in the pull request's version of the file; `None` for the whole file, or if the line is gone."""
    comments: tuple[ThreadComment, ...]
    """From the oldest to the newest; at least one."""


@runtime_checkable
class Conversation(Protocol):
    """The conversation on one pull request.

    All methods raise `ForgeUnavailableError`, `NotFoundError` and `ForgeError`.
    """

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads, the oldest first; all threads if the forge reports no resolution."""

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the pull request as a whole, from the oldest to the newest."""

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a check's log, at most `LOG_LIMIT` characters; empty if there is none."""

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Put one reply with the mark of `marker` in a thread."""

    def put_comment(self, marker: str, text: str) -> None:
        """Put one comment with the mark of `marker` on the pull request."""

    def has_comment(self, marker: str) -> bool:
        """Return whether the pull request has a comment with the mark of `marker`."""


@runtime_checkable
class FollowedForge(Forge, Protocol):
    """A forge whose pull requests an agent can follow."""

    def conversation(self, number: int) -> Conversation:
        """Return the conversation on a pull request; sends no request yet."""
