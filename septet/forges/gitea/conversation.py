"""The conversation on a pull request of Gitea or Forgejo."""

from collections.abc import Iterator
from dataclasses import dataclass

from septet.forges.events.conversation import LOG_LIMIT, MOST_THREADS, ReviewThread, ThreadComment
from septet.forges.forge import CommitCheck
from septet.forges.gitea.answers import GiteaReviewAnswer, GiteaReviewCommentAnswer
from septet.forges.opening import MarkedComment
from septet.forges.rest_conversation import RestConversation


@dataclass(frozen=True, slots=True)
class GiteaConversation(RestConversation):
    """The conversation on one pull request; as `Conversation`. A thread is the comments on one line of a file."""

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the unresolved threads of reviews; as `Conversation.threads`."""
        threads: dict[tuple[str, int], list[GiteaReviewCommentAnswer]] = {}
        for answer in sorted(self._review_comments(), key=lambda each: each.id):
            threads.setdefault((answer.path, answer.position), []).append(answer)
        found = [_thread(answers) for answers in threads.values() if not answers[0].resolver]
        return tuple(found[-MOST_THREADS:])

    def check_log(self, check: CommitCheck) -> str:
        """Return the summary of a check; as `Conversation.check_log`. Statuses name no log."""
        return check.summary[-LOG_LIMIT:]

    def replies(self, thread: ReviewThread) -> list[MarkedComment]:
        """Return the comments on the same line."""
        place = (thread.path, thread.line or 0)
        return [each.marked_comment() for each in self._review_comments() if (each.path, each.position) == place]

    def create_reply(self, thread: ReviewThread, text: str) -> None:
        """Create a review with a comment on the same line."""
        comment = {"path": thread.path, "new_position": thread.line or 0, "body": text}
        body = {"event": "COMMENT", "comments": [comment]}
        self.forge.write(f"a reply on {self.name}", "POST", f"{self.path}/reviews", body)

    def _review_comments(self) -> Iterator[GiteaReviewCommentAnswer]:
        path = f"{self.path}/reviews"
        with self.forge.asking(f"the reviews of {self.name}") as client:
            for review in client.read_list(GiteaReviewAnswer, path):
                if review.comments_count:
                    yield from client.get(list[GiteaReviewCommentAnswer], f"{path}/{review.id}/comments")


def _thread(answers: list[GiteaReviewCommentAnswer]) -> ReviewThread:
    first = answers[0]
    comments = tuple(ThreadComment(str(each.id), each.comment()) for each in answers)
    return ReviewThread(str(first.id), first.path, first.position or None, comments)
