"""What is said on a pull request of Gitea's or Forgejo's."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from septet.forges.conversation import LOG_LIMIT, MOST_THREADS, ReviewThread, ThreadComment
from septet.forges.forge import Comment, CommitCheck
from septet.forges.gitea.answers import GiteaReviewCommentAnswer
from septet.forges.gitea.client import PAGE, asking_gitea, is_own_account
from septet.forges.http_client import ForgeApi
from septet.forges.opening import CommentPlace, MarkedComment, put_once

_MOST_PAGES: Final = 50
_WRITERS: Final = frozenset({"owner", "admin", "write"})


@dataclass(frozen=True, slots=True)
class GiteaConversation:
    """What is said on one pull request; as `Conversation`. What stands on one line of one file is one thread."""

    project: str
    api: ForgeApi
    number: int

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the threads of reviews that nobody has resolved; as `Conversation.threads`."""
        threads: dict[tuple[str, int], list[GiteaReviewCommentAnswer]] = {}
        for answer in sorted(self._review_comments(), key=lambda each: each.id):
            threads.setdefault((answer.path, answer.position), []).append(answer)
        found = [self._thread(answers) for answers in threads.values() if not answers[0].resolver]
        return tuple(found[-MOST_THREADS:])

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the whole of it; as `Conversation.comments`."""
        with asking_gitea(self.api, self.project, f"the comments on {self._name}") as repository:
            return tuple(each.comment("") for each in repository.issue_get_comments(self.number))

    @staticmethod
    def check_log(check: CommitCheck) -> str:
        """Return what a check says of itself; as `Conversation.check_log`. Statuses name no log."""
        return check.summary[-LOG_LIMIT:]

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Have a thread carry one reply; as `Conversation.reply`: a review with a comment on the same line."""
        place = CommentPlace(
            lambda: [
                each.marked_comment()
                for each in self._review_comments()
                if (each.path, each.position) == (thread.path, thread.line or 0)
            ],
            partial(self._create_reply, thread),
            self._edit,
            partial(is_own_account, self.api),
        )
        put_once(place, marker, text)

    def put_comment(self, marker: str, text: str) -> None:
        """Have it carry one comment; as `Conversation.put_comment`."""
        put_once(self._place, marker, text)

    def has_comment(self, marker: str) -> bool:
        """Say whether it carries a comment with a mark; as `Conversation.has_comment`."""
        return self._place.has(marker)

    @property
    def _place(self) -> CommentPlace:
        return CommentPlace(self._marked_comments, self._create, self._edit, partial(is_own_account, self.api))

    @staticmethod
    def _thread(answers: list[GiteaReviewCommentAnswer]) -> ReviewThread:
        first = answers[0]
        comments = tuple(ThreadComment(str(each.id), each.comment("")) for each in answers)
        return ReviewThread(str(first.id), first.path, first.position or None, comments)

    def _review_comments(self) -> Iterator[GiteaReviewCommentAnswer]:
        with asking_gitea(self.api, self.project, f"the reviews of {self._name}") as repository:
            for page in range(1, _MOST_PAGES + 1):
                reviews = repository.repo_list_pull_reviews(self.number, page)
                for review in reviews:
                    if review.comments_count:
                        yield from repository.repo_get_pull_review_comments(self.number, review.id)
                if len(reviews) < PAGE:
                    return

    def _marked_comments(self) -> list[MarkedComment]:
        with asking_gitea(self.api, self.project, f"the comments on {self._name}") as repository:
            return [each.marked_comment() for each in repository.issue_get_comments(self.number)]

    def _create_reply(self, thread: ReviewThread, text: str) -> None:
        comment = {"path": thread.path, "new_position": thread.line or 0, "body": text}
        with asking_gitea(self.api, self.project, f"a reply on {self._name}") as repository:
            repository.repo_create_pull_review(self.number, {"event": "COMMENT", "comments": [comment]})

    def _create(self, text: str) -> None:
        with asking_gitea(self.api, self.project, f"a comment on {self._name}") as repository:
            repository.issue_create_comment(self.number, text)

    def _edit(self, comment_id: int, text: str) -> None:
        with asking_gitea(self.api, self.project, f"comment {comment_id} on {self._name}") as repository:
            repository.issue_edit_comment(comment_id, text)

    @property
    def _name(self) -> str:
        return f"pull request {self.number} of {self.project}"
