"""What is said on a pull request of a forge that is asked over HTTP, as far as forges have it in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial

from septet.forges.events.conversation import ReviewThread
from septet.forges.forge import Comment, CommitCheck
from septet.forges.opening import CommentPlace, MarkedComment, put_once
from septet.forges.rest import RestForge


@dataclass(frozen=True, slots=True)
class RestConversation(ABC):
    """What is said on one pull request; as `Conversation`."""

    forge: RestForge
    number: int

    @property
    def name(self) -> str:
        """How errors name the pull request."""
        return self.forge.pull_name(self.number)

    @property
    def path(self) -> str:
        """Where the pull request is."""
        return f"{self.forge.pulls}/{self.number}"

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the whole of it; as `Conversation.comments`."""
        with self.forge.asking(f"the comments on {self.name}") as client:
            return tuple(each.comment() for each in self.forge.read_comments(client, self.path))

    def put_comment(self, marker: str, text: str) -> None:
        """Have it carry one comment; as `Conversation.put_comment`."""
        put_once(self.forge.comment_place(self.name, self.path), marker, text)

    def has_comment(self, marker: str) -> bool:
        """Return whether it carries a comment with a mark; as `Conversation.has_comment`."""
        return self.forge.comment_place(self.name, self.path).has(marker)

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Have a thread carry one reply; as `Conversation.reply`."""
        place = CommentPlace(
            partial(self.replies, thread), partial(self.create_reply, thread), self.edit_reply, self.forge.is_own
        )
        put_once(place, marker, text)

    def edit_reply(self, comment_id: int, text: str) -> None:
        """Replace the text of a reply."""
        self.forge.edit_comment(self.name, self.path, comment_id, text)

    @abstractmethod
    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the threads that nobody has resolved; as `Conversation.threads`."""

    @abstractmethod
    def check_log(self, check: CommitCheck) -> str:
        """Return the end of what a check printed; as `Conversation.check_log`."""

    @abstractmethod
    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the comments of a thread."""

    @abstractmethod
    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Add a comment to a thread."""
