"""What is said on a pull request of GitHub's."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.conversation import LOG_LIMIT, LOG_TAIL_BYTES, MOST_THREADS, ReviewThread, ThreadComment
from septet.forges.forge import Comment, CommitCheck
from septet.forges.github.answers import CheckOutputAnswer, CommentAnswer, ReviewCommentAnswer
from septet.forges.github.client import asking, read
from septet.forges.github.permission import is_own_account
from septet.forges.opening import CommentPlace, put_once
from septet.forges.renames import NAMES

_PAGE: Final = 100
_MOST_PAGES: Final = 50
_HEADERS: Final = {"X-GitHub-Api-Version": "2022-11-28"}


@dataclass(frozen=True, slots=True)
class GitHubConversation:
    """What is said on one pull request; as `Conversation`."""

    project: str
    api_url: str
    number: int
    token: str | None = field(default=None, repr=False)

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the threads of reviews; as `Conversation.threads`. The REST API calls none resolved."""
        threads: dict[int, list[ReviewCommentAnswer]] = {}
        for answer in self._review_comments():
            threads.setdefault(answer.in_reply_to_id or answer.id, []).append(answer)
        return tuple(self._thread(root, answers) for root, answers in threads.items())[-MOST_THREADS:]

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the whole of it; as `Conversation.comments`."""
        return tuple(answer.comment() for answer in self._comments())

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a job's log, else of what a check says of itself; as `Conversation.check_log`."""
        if not check.id.isdecimal():
            return check.summary[-LOG_LIMIT:]
        try:
            what = f"the log of {check.name} in {self.project}"
            with asking(self.api_url, self.token, what, tail_bytes=LOG_TAIL_BYTES) as github:
                answer = github.rest.actions.download_job_logs_for_workflow_run(
                    *self._repository, int(check.id), headers=_HEADERS
                )
                log: str = answer.text
                return log[-LOG_LIMIT:]
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):  # a check of another program than GitHub Actions
            with asking(self.api_url, self.token, f"the check {check.name} in {self.project}") as github:
                run = github.rest.checks.get(*self._repository, int(check.id), headers=_HEADERS)
                return read(CheckOutputAnswer, run).text[-LOG_LIMIT:]

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Have a thread carry one reply; as `Conversation.reply`."""
        place = CommentPlace(
            lambda: [
                answer.marked_comment()
                for answer in self._review_comments()
                if str(answer.in_reply_to_id) == thread.id
            ],
            partial(self._create_reply, int(thread.id)),
            self._edit_reply,
            self._is_own,
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
        return CommentPlace(
            lambda: [each.marked_comment() for each in self._comments()],
            self._create_comment,
            self._edit_comment,
            self._is_own,
        )

    def _is_own(self, account: str) -> bool:
        return is_own_account(self.api_url, self.token, account)

    def _thread(self, root: int, answers: list[ReviewCommentAnswer]) -> ReviewThread:
        first = answers[0]
        comments = tuple(ThreadComment(str(answer.id), answer.comment()) for answer in answers)
        return ReviewThread(str(root), first.path, first.line or first.original_line, comments)

    def _review_comments(self) -> list[ReviewCommentAnswer]:
        found: list[ReviewCommentAnswer] = []
        with asking(self.api_url, self.token, f"the reviews of {self._name}") as github:
            for page in range(1, _MOST_PAGES + 1):
                answer = github.rest.pulls.list_review_comments(
                    *self._repository, self.number, per_page=_PAGE, page=page, headers=_HEADERS
                )
                answers = read(list[ReviewCommentAnswer], answer)
                found += answers
                if len(answers) < _PAGE:
                    break
        return found

    def _comments(self) -> list[CommentAnswer]:
        found: list[CommentAnswer] = []
        with asking(self.api_url, self.token, f"the comments on {self._name}") as github:
            for page in range(1, _MOST_PAGES + 1):
                answer = github.rest.issues.list_comments(
                    *self._repository, self.number, per_page=_PAGE, page=page, headers=_HEADERS
                )
                answers = read(list[CommentAnswer], answer)
                found += answers
                if len(answers) < _PAGE:
                    break
        return found

    def _create_reply(self, thread: int, text: str) -> None:
        with asking(self.api_url, self.token, f"a reply on {self._name}") as github:
            github.rest.pulls.create_reply_for_review_comment(
                *self._repository, self.number, thread, body=text, headers=_HEADERS
            )

    def _edit_reply(self, comment_id: int, text: str) -> None:
        with asking(self.api_url, self.token, f"reply {comment_id} on {self._name}") as github:
            github.rest.pulls.update_review_comment(*self._repository, comment_id, body=text, headers=_HEADERS)

    def _create_comment(self, text: str) -> None:
        with asking(self.api_url, self.token, f"a comment on {self._name}") as github:
            github.rest.issues.create_comment(*self._repository, self.number, body=text, headers=_HEADERS)

    def _edit_comment(self, comment_id: int, text: str) -> None:
        with asking(self.api_url, self.token, f"comment {comment_id} on {self._name}") as github:
            github.rest.issues.update_comment(*self._repository, comment_id, body=text, headers=_HEADERS)

    @property
    def _repository(self) -> tuple[str, str]:
        owner, _, name = NAMES.now(self.api_url, self.project).partition("/")
        return owner, name

    @property
    def _name(self) -> str:
        return f"pull request {self.number} of {self.project}"
