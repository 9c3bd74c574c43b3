"""What is said on a pull request, and how it is answered: reviews by file and line, logs of checks, conflicts."""

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from septet.forges.forge import Comment, CommitCheck, Forge

LOG_LIMIT: Final = 8000
"""Characters of a failing check's log: its end says most."""
LOG_TAIL_BYTES: Final = 4 * LOG_LIMIT
MOST_THREADS: Final = 100
"""The most threads of reviews that are looked at: the newest."""


@dataclass(frozen=True, slots=True)
class ThreadComment:
    """One comment of a thread."""

    id: str
    comment: Comment


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """What is said of one place of a pull request, or of a review that stands alone."""

    id: str
    """By which it is answered."""
    path: str
    line: int | None
    """In the file as the pull request has it; `None` where it speaks of the whole file, or the line is gone."""
    comments: tuple[ThreadComment, ...]
    """From the oldest to the newest; at least one."""


@runtime_checkable
class Conversation(Protocol):
    """What is said on one pull request. All raise `ForgeUnavailableError`, `NotFoundError` and `ForgeError`."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the threads that nobody has resolved, as far as the forge tells, the oldest first."""

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the pull request as a whole, from the oldest to the newest."""

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of what a check printed, at most `LOG_LIMIT` characters, as far as there is any."""

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Have a thread carry one reply with the mark of `marker`."""

    def put_comment(self, marker: str, text: str) -> None:
        """Have the pull request carry one comment with the mark of `marker`."""

    def has_comment(self, marker: str) -> bool:
        """Return whether the pull request carries a comment with the mark of `marker`."""


@runtime_checkable
class FollowedForge(Forge, Protocol):
    """A forge whose pull requests an agent can follow."""

    def conversation(self, number: int) -> Conversation:
        """Return what is said on a pull request; nothing is asked yet."""
