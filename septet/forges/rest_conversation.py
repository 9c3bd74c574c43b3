"""The conversation on a pull request, as far as all forges with an HTTP API have it in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial

from septet.forges.opening import CommentPlace, MarkedComment, put_once
from septet.forges.rest import RestForge
from septet.forges.values import Comment, CommitCheck, ReviewThread


@dataclass(frozen=True, slots=True)
class RestConversation(ABC):
    """The conversation on one pull request; see `Conversation`."""

    forge: RestForge
    number: int

    @property
    def name(self) -> str:
        """The name of the pull request for errors."""
        return self.forge.pull_name(self.number)

    @property
    def path(self) -> str:
        """The path of the pull request in the API."""
        return f"{self.forge.pulls}/{self.number}"

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the pull request as a whole; see `Conversation.comments`."""
        with self.forge.asking(f"the comments on {self.name}") as client:
            return tuple(each.comment() for each in self.forge.read_comments(client, self.path))

    def put_comment(self, marker: str, text: str) -> None:
        """Write one comment with a hidden mark on the pull request; see `Conversation.put_comment`."""
        put_once(self.forge.comment_place(self.name, self.path), marker, text)

    def has_comment(self, marker: str) -> bool:
        """Return whether the pull request has a comment with a hidden mark."""
        return self.forge.comment_place(self.name, self.path).has(marker)

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Write one reply with a hidden mark in a thread; see `Conversation.reply`."""
        place = CommentPlace(
            partial(self.replies, thread), partial(self.create_reply, thread), self.edit_reply, self.forge.is_own
        )
        put_once(place, marker, text)

    def edit_reply(self, comment_id: int, text: str) -> None:
        """Replace the text of a reply."""
        self.forge.edit_comment(self.name, self.path, comment_id, text)

    @abstractmethod
    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads; see `Conversation.threads`."""

    @abstractmethod
    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a check's log; see `Conversation.check_log`."""

    @abstractmethod
    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the comments of a thread."""

    @abstractmethod
    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Add a comment to a thread."""
