"""What is said on a merge request of GitLab's."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.conversation import LOG_LIMIT, LOG_TAIL_BYTES, MOST_THREADS, ReviewThread, ThreadComment
from septet.forges.forge import Comment, CommitCheck
from septet.forges.gitlab.answers import (
    GitLabDiscussionAnswer,
    GitLabNoteAnswer,
)
from septet.forges.gitlab.client import asking_gitlab, is_own_account, read
from septet.forges.http_client import ForgeApi
from septet.forges.opening import CommentPlace, put_once
from septet.forges.renames import NAMES

if TYPE_CHECKING:
    from gitlab import Gitlab

_PAGE: Final = 100
_MOST_PAGES: Final = 50
_DEVELOPER: Final = 30
"""The lowest access level that may push."""


@dataclass(frozen=True, slots=True)
class GitLabConversation:
    """What is said on one merge request; as `Conversation`."""

    project: str
    api: ForgeApi
    number: int

    def threads(self) -> tuple[ReviewThread, ...]:
        """Return the discussions that nobody has resolved; as `Conversation.threads`."""
        threads = []
        for discussion in self._discussions():
            first = discussion.notes[0] if discussion.notes else None
            if first is None or not first.resolvable or all(note.resolved for note in discussion.notes):
                continue
            comments = tuple(ThreadComment(str(note.id), note.comment({})) for note in discussion.notes)
            threads.append(ReviewThread(discussion.id, first.path, first.line, comments))
        return tuple(threads[-MOST_THREADS:])

    def comments(self) -> tuple[Comment, ...]:
        """Return the comments on the whole of it; as `Conversation.comments`."""
        return tuple(note.comment({}) for note in self._notes() if note.type is None)

    def check_log(self, check: CommitCheck) -> str:
        """Return the end of a job's trace; as `Conversation.check_log`. A service has none."""
        if not check.id.isdecimal():
            return check.summary[-LOG_LIMIT:]
        try:
            what = f"the log of {check.name} in {self.project}"
            with asking_gitlab(self.api, what, tail_bytes=LOG_TAIL_BYTES) as gitlab:
                job = self._project(gitlab).jobs.get(int(check.id), lazy=True)
                trace: bytes = job.trace(extra_headers={"Range": f"bytes=-{LOG_TAIL_BYTES}"})
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):
            return check.summary[-LOG_LIMIT:]
        return trace.decode(errors="replace")[-LOG_LIMIT:]

    def reply(self, thread: ReviewThread, marker: str, text: str) -> None:
        """Have a discussion carry one reply; as `Conversation.reply`."""
        place = CommentPlace(
            lambda: [
                note.marked_comment()
                for each in self._discussions()
                if each.id == thread.id
                for note in each.notes
            ],
            partial(self._create_reply, thread.id),
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
        return CommentPlace(
            lambda: [note.marked_comment() for note in self._notes()],
            self._create,
            self._edit,
            partial(is_own_account, self.api),
        )

    def _discussions(self) -> list[GitLabDiscussionAnswer]:
        found: list[GitLabDiscussionAnswer] = []
        with asking_gitlab(self.api, f"the discussions of {self._name}") as gitlab:
            discussions = self._request(gitlab).discussions
            for page in range(1, _MOST_PAGES + 1):
                answers = read(
                    list[GitLabDiscussionAnswer], discussions.list(per_page=_PAGE, page=page, get_all=False)
                )
                found += answers
                if len(answers) < _PAGE:
                    break
        return found

    def _notes(self) -> list[GitLabNoteAnswer]:
        found: list[GitLabNoteAnswer] = []
        with asking_gitlab(self.api, f"the comments on {self._name}") as gitlab:
            notes = self._request(gitlab).notes
            for page in range(1, _MOST_PAGES + 1):
                answer = notes.list(sort="asc", order_by="created_at", per_page=_PAGE, page=page, get_all=False)
                answers = read(list[GitLabNoteAnswer], answer)
                found += [each for each in answers if not each.system]
                if len(answers) < _PAGE:
                    break
        return found

    def _create_reply(self, discussion: str, text: str) -> None:
        with asking_gitlab(self.api, f"a reply on {self._name}") as gitlab:
            self._request(gitlab).discussions.get(discussion, lazy=True).notes.create({"body": text})

    def _create(self, text: str) -> None:
        with asking_gitlab(self.api, f"a comment on {self._name}") as gitlab:
            self._request(gitlab).notes.create({"body": text})

    def _edit(self, note_id: int, text: str) -> None:
        with asking_gitlab(self.api, f"comment {note_id} on {self._name}") as gitlab:
            self._request(gitlab).notes.update(note_id, {"body": text})

    def _request(self, gitlab: "Gitlab") -> Any:  # noqa: ANN401 -- its managers are typed to give lists of any
        return self._project(gitlab).mergerequests.get(self.number, lazy=True)

    def _project(self, gitlab: "Gitlab") -> Any:  # noqa: ANN401 -- as above
        return gitlab.projects.get(NAMES.now(self.api.url, self.project), lazy=True)

    @property
    def _name(self) -> str:
        return f"merge request {self.number} of {self.project}"
