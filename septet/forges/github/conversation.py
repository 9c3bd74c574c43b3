"""The conversation on a pull request of GitHub."""

from dataclasses import dataclass

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.events.conversation import LOG_LIMIT, LOG_TAIL_BYTES, MOST_THREADS, ReviewThread, ThreadComment
from septet.forges.forge import CommitCheck
from septet.forges.github.answers import CheckOutputAnswer, ReviewCommentAnswer
from septet.forges.opening import MarkedComment
from septet.forges.rest_conversation import RestConversation


@dataclass(frozen=True, slots=True)
class GitHubConversation(RestConversation):
    """The conversation on one pull request; as `Conversation`."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the threads of reviews; as `Conversation.threads`. The REST API reports no resolution."""
        threads: dict[int, list[ReviewCommentAnswer]] = {}
        for answer in self._review_comments():
            threads.setdefault(answer.in_reply_to_id or answer.id, []).append(answer)
        return tuple(_thread(root, answers) for root, answers in threads.items())[-MOST_THREADS:]

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a job's log, or else of a check's own output; as `Conversation.check_log`."""
        if not check.id.isdecimal():
            return check.summary[-LOG_LIMIT:]
        where = f"{check.name} in {self.forge.project}"
        try:
            with self.forge.asking(f"the log of {where}", tail_bytes=LOG_TAIL_BYTES) as client:
                return client.send("GET", f"actions/jobs/{check.id}/logs").text[-LOG_LIMIT:]
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):  # a check of a program other than GitHub Actions
            with self.forge.asking(f"the check {where}") as client:
                return client.get(CheckOutputAnswer, f"check-runs/{check.id}").text[-LOG_LIMIT:]

    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the replies in a thread."""
        found = (each for each in self._review_comments() if str(each.in_reply_to_id) == thread.id)
        return [each.marked_comment() for each in found]

    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Add a reply to a thread."""
        path = f"{self.path}/comments/{thread.id}/replies"
        self.forge.write(f"a reply on {self.name}", "POST", path, {"body": text})

    def edit_reply(self, comment_id: int, text: str) -> None:
        """Replace the text of a reply."""
        path = f"pulls/comments/{comment_id}"
        self.forge.write(f"reply {comment_id} on {self.name}", "PATCH", path, {"body": text})

    def _review_comments(self) -> list[ReviewCommentAnswer]:
        with self.forge.asking(f"the reviews of {self.name}") as client:
            return client.read_list(ReviewCommentAnswer, f"{self.path}/comments")


def _thread(root: int, answers: list[ReviewCommentAnswer]) -> ReviewThread:
    first = answers[0]
    comments = tuple(ThreadComment(str(answer.id), answer.comment()) for answer in answers)
    return ReviewThread(str(root), first.path, first.line or first.original_line, comments)
